"""The compiled core. Nothing in here imports from the Python layer above it.

Why a compiled core. Planning a block maximises a function with many local maxima, so the value and the
gradient are computed a great many times. Each time costs one small eigenproblem a step; with matrices this
small an array library spends its time on calls rather than on arithmetic. The core works on all steps of a
block side by side instead, so that the inner loops become vector instructions.

Why the gradient is written by hand. Differentiating through an eigendecomposition divides by gaps between
eigenvalues and gives NaN where they coincide, and A0 = I makes them coincide all the time. The derivative of
the matrix power has no such hole: it needs divided differences of x^gamma, which have a limit.

Gram or dense. The memory matrix is A0 plus m outer products. For A0 = c I and m < d its power acts outside of
the span of the m actions as c^gamma, so that the m x m Gram matrix of the actions says everything and the
eigenproblem has size m instead of d. Otherwise the d x d matrix itself is used. The choice is automatic, both
are exact.

Other memories. With a decay the action s steps ago counts decay^(s-1) times: weights in the forms above, by
branches that decay = 1 does not take. An infinite m is a third form, chosen by the type of what stands for A0
(`fading`, `endless`): the sum over all that was played is one matrix, which runs on in time, and so does the
derivative, backwards, so that m costs nothing. A block has no actions before it then; what was played is part
of the form. Its matrices have full rank, and no smaller Gram matrix. Their integer powers are taken by
solutions with a Cholesky factor (`integer_powers`); others, from d = 3 on, by sums of inverses that are the
power to rounding (`power_poles`), of matrices made tridiagonal (`fractional_powers`). That takes an interval
which no eigenvalue leaves. Where it is too wide, or d is small, a spectrum of size d is computed. A response
that is no power has the dense form and the divided differences of `responses`; one's own comes as two
addresses, so that no kernel is compiled anew for it.

Why kernels call each other by address. Numba links a function into each of its callers and optimises it there
again, with all that it calls. With a planner inside of each episode most of the time of a first run went into
copies. Here a kernel is compiled once and its callers know its address (`_link`); small pieces of inner loops
are still inlined. That takes internals of Numba; with a version that lacks them, or with FASTLBM_LINK=0,
Numba makes the calls, with the same bits.

Vectors with a name. Most loops over windows are left to LLVM to vectorise. Where blocks are short, in the
closed forms for m <= 2 and in the ascent, that left most of the work to scalar loops and to checks whether
arrays overlap; these kernels name their vectors (`vectors`).

Why no fast-math. It lets the compiler reorder sums, and Numba compiles an inlined function again in each
caller: the same seed gave other bits when a function had been compiled in the same process rather than loaded
from disk. With plain arithmetic and explicit fused multiply-adds the kernels are as fast, and reproducible.

Where compiled code is kept. In `__pycache__` beside the source, or in a directory of the user if that cannot
be written to, under a digest of the sources (`_cache`). NUMBA_CACHE_DIR=DIR puts it elsewhere,
FASTLBM_CACHE=0 neither reads nor writes any; `fastlbm doctor` prints the place. A first run is compiled by
two processes (`_together`), which is told where somebody looks (`_notice`).

NUMBA_DISABLE_JIT=1 runs the core as plain Python: slow, but a debugger can step through it.
"""
