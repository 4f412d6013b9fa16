/* Value and exact gradient of the O3M block UCB in plain C: the Gram form of fastlbm/kernels/pair.py, by its
 * spectra in closed form, for m = 2, A0 = I and an integer gamma, with the bonus of fastlbm/kernels/optimism.py.
 *
 * Arrays are time-contiguous: a coordinate is a row of N = L + 2 actions. The window of the action in column
 * w + 2 holds u in column w + 1 and v in column w; whatever belongs to it is kept at index w of a row. The
 * loops run over windows with unit stride, through restrict pointers, so that the compiler vectorises them. */

#include <math.h>

#define RESTRICT __restrict__

/* x^gamma: y = x, or 1/x for a negative gamma; coefficients of the polynomials by degree. */
typedef struct {
    double y0;
    double negative;
    double first[5];
    double second[5];
} power;

/* Rows of L windows each. */
typedef struct {
    double *uu, *uv, *vv, *ua, *va, *c, *s, *f, *h, *ff, *fh, *hh, *zu, *zv, *yu, *yv, *pu, *pv, *mean, *square;
} rows;
#define ROWS 20

static inline double horner(const double *k, double y) {
    return fma(y, fma(y, fma(y, fma(y, k[4], k[3]), k[2]), k[1]), k[0]);
}

/* The sum of k_i h_i(y, z), by h_i = z h_{i-1} + y^i. */
static inline double homogeneous(const double *k, double y, double z) {
    double p = y, h = z + p, total = fma(k[1], h, k[0]);
    for (int i = 2; i < 5; i++) {
        p *= y;
        h = fma(z, h, p);
        total = fma(k[i], h, total);
    }
    return total;
}

static void products(long d, long L, long N, const double *RESTRICT a, double *RESTRICT uu, double *RESTRICT uv,
                     double *RESTRICT vv, double *RESTRICT ua, double *RESTRICT va) {
    for (long w = 0; w < L; w++) uu[w] = uv[w] = vv[w] = ua[w] = va[w] = 0.0;
    for (long i = 0; i < d; i++) {
        const double *x = a + i * N;
        for (long w = 0; w < L; w++) {
            uu[w] += x[w + 1] * x[w + 1];
            uv[w] += x[w + 1] * x[w];
            vv[w] += x[w] * x[w];
            ua[w] += x[w + 1] * x[w + 2];
            va[w] += x[w] * x[w + 2];
        }
    }
}

/* The rotation that makes the Gram matrix diagonal, phi and its divided differences, z = phi(G) q. */
static void spectra(long L, power k, const double *RESTRICT uu, const double *RESTRICT uv, const double *RESTRICT vv,
                    const double *RESTRICT ua, const double *RESTRICT va, double *RESTRICT cos, double *RESTRICT sin,
                    double *RESTRICT pf, double *RESTRICT ph, double *RESTRICT pff, double *RESTRICT pfh,
                    double *RESTRICT phh, double *RESTRICT zu, double *RESTRICT zv) {
    double one = k.negative > 0.0 ? 0.0 : 1.0;
    double slope1 = k.negative > 0.0 ? -k.y0 : 0.0, slope2 = k.negative > 0.0 ? k.y0 : 0.0;
    for (long w = 0; w < L; w++) {
        double diff = uu[w] - vv[w], off = 2.0 * uv[w];
        double t = off / (fabs(diff) + sqrt(diff * diff + off * off) + 1e-300);
        t = diff >= 0.0 ? t : -t;
        double c = 1.0 / sqrt(1.0 + t * t), s = t * c;
        double g = uu[w] + t * uv[w], h = vv[w] - t * uv[w];
        double y = 1.0 + (g > 0.0 ? g : 0.0), z = 1.0 + (h > 0.0 ? h : 0.0);
        y = k.negative > 0.0 ? 1.0 / y : y;
        z = k.negative > 0.0 ? 1.0 / z : z;
        double fy = (one + slope1 * y) * horner(k.first, y), fz = (one + slope1 * z) * horner(k.first, z);
        cos[w] = c;
        sin[w] = s;
        pf[w] = fy;
        ph[w] = fz;
        pff[w] = (one + slope2 * y * y) * homogeneous(k.second, y, y);
        pfh[w] = (one + slope2 * y * z) * homogeneous(k.second, y, z);
        phh[w] = (one + slope2 * z * z) * homogeneous(k.second, z, z);
        double left = fy * (c * ua[w] + s * va[w]), right = fz * (c * va[w] - s * ua[w]);
        zu[w] = c * left - s * right;
        zv[w] = s * left + c * right;
    }
}

/* Features into B (d, L). */
static void features(long d, long L, long N, const double *RESTRICT a, const double *RESTRICT zu,
                     const double *RESTRICT zv, double *RESTRICT B) {
    for (long i = 0; i < d; i++)
        for (long w = 0; w < L; w++)
            B[i * L + w] = a[i * N + w + 2] + zu[w] * a[i * N + w + 1] + zv[w] * a[i * N + w];
}

/* The sum of <b, theta> + beta ||b||, and U (d, L) = its derivative with respect to B. */
static double optimism(long d, long L, const double *RESTRICT theta, const double *RESTRICT V_inv, double beta,
                       const double *RESTRICT B, double *RESTRICT U, double *RESTRICT mean,
                       double *RESTRICT square) {
    for (long i = 0; i < d; i++) {
        double *u = U + i * L;
        /* Three columns of V_inv a pass. */
        for (long j = 0; j < d; j += 3) {
            long j1 = j + 1 < d ? j + 1 : j, j2 = j + 2 < d ? j + 2 : j;
            double v0 = V_inv[i * d + j], v1 = j + 1 < d ? V_inv[i * d + j1] : 0.0;
            double v2 = j + 2 < d ? V_inv[i * d + j2] : 0.0, keep = j > 0 ? 1.0 : 0.0;
            for (long w = 0; w < L; w++)
                u[w] = keep * u[w] + (v0 * B[j * L + w] + (v1 * B[j1 * L + w] + v2 * B[j2 * L + w]));
        }
    }
    for (long w = 0; w < L; w++) mean[w] = square[w] = 0.0;
    for (long i = 0; i < d; i++)
        for (long w = 0; w < L; w++) {
            mean[w] += theta[i] * B[i * L + w];
            square[w] += U[i * L + w] * B[i * L + w];
        }
    for (long w = 0; w < L; w++) {
        double root = sqrt(square[w] > 0.0 ? square[w] : 0.0);
        mean[w] += beta * root;
        square[w] = square[w] > 1e-300 ? beta / (root + 1e-300) : 0.0;
    }
    for (long i = 0; i < d; i++)
        for (long w = 0; w < L; w++) U[i * L + w] = theta[i] + square[w] * U[i * L + w];
    double total = 0.0;
    for (long w = 0; w < L; w++) total += mean[w];
    return total;
}

/* y = phi(G) p and the gradient with respect to the Gram matrix, which takes the place of uu, uv and vv. */
static void inner_gradient(long d, long L, long N, const double *RESTRICT a, const double *RESTRICT U, rows r) {
    double *RESTRICT pu = r.pu, *RESTRICT pv = r.pv, *RESTRICT yu = r.yu, *RESTRICT yv = r.yv;
    double *RESTRICT uu = r.uu, *RESTRICT uv = r.uv, *RESTRICT vv = r.vv;
    const double *RESTRICT cos = r.c, *RESTRICT sin = r.s, *RESTRICT ua = r.ua, *RESTRICT va = r.va;
    const double *RESTRICT f = r.f, *RESTRICT h = r.h, *RESTRICT ff = r.ff, *RESTRICT fh = r.fh, *RESTRICT hh = r.hh;
    for (long w = 0; w < L; w++) pu[w] = pv[w] = 0.0;
    for (long i = 0; i < d; i++)
        for (long w = 0; w < L; w++) {
            pu[w] += a[i * N + w + 1] * U[i * L + w];
            pv[w] += a[i * N + w] * U[i * L + w];
        }
    for (long w = 0; w < L; w++) {
        double c = cos[w], s = sin[w];
        double x = c * ua[w] + s * va[w], y = c * va[w] - s * ua[w];
        double p = c * pu[w] + s * pv[w], q = c * pv[w] - s * pu[w];
        double one = ff[w] * x * p, two = hh[w] * y * q, mixed = 0.5 * fh[w] * (x * q + y * p);
        double cross = 2.0 * c * s * mixed;
        yu[w] = c * f[w] * p - s * h[w] * q;
        yv[w] = s * f[w] * p + c * h[w] * q;
        uu[w] = 2.0 * (c * c * one - cross + s * s * two);
        uv[w] = 2.0 * (c * s * (one - two) + (c * c - s * s) * mixed);
        vv[w] = 2.0 * (s * s * one + cross + c * c * two);
    }
}

static void gradient(long d, long L, long N, const double *RESTRICT a, const double *RESTRICT U, rows r,
                     double *RESTRICT grad) {
    const double *RESTRICT zu = r.zu, *RESTRICT zv = r.zv, *RESTRICT yu = r.yu, *RESTRICT yv = r.yv;
    const double *RESTRICT uu = r.uu, *RESTRICT uv = r.uv, *RESTRICT vv = r.vv;
    for (long i = 0; i < d; i++) {
        const double *x = a + i * N, *u = U + i * L;
        double *g = grad + i * N;
        g[0] = g[1] = 0.0;
        for (long w = 0; w < L; w++) g[w + 2] = u[w] + yu[w] * x[w + 1] + yv[w] * x[w];
        for (long w = 0; w < L; w++)
            g[w + 1] += zu[w] * u[w] + yu[w] * x[w + 2] + (uu[w] * x[w + 1] + uv[w] * x[w]);
        for (long w = 0; w < L; w++)
            g[w] += zv[w] * u[w] + yv[w] * x[w + 2] + (uv[w] * x[w + 1] + vv[w] * x[w]);
    }
}

/* `times` evaluations in a row. a and grad are (d, L + 2); work has (ROWS + 2 d) L numbers. */
double block_ucb(long d, long L, const double *a, const double *theta, const double *V_inv, double beta,
                 const power *k, double *work, double *grad, long times) {
    long N = L + 2;
    double value = 0.0;
    double *p[ROWS];
    for (int i = 0; i < ROWS; i++) p[i] = work + i * L;
    rows r = {p[0],  p[1],  p[2],  p[3],  p[4],  p[5],  p[6],  p[7],  p[8],  p[9],
              p[10], p[11], p[12], p[13], p[14], p[15], p[16], p[17], p[18], p[19]};
    double *B = work + ROWS * L, *U = B + d * L;
    for (long i = 0; i < times; i++) {
        products(d, L, N, a, r.uu, r.uv, r.vv, r.ua, r.va);
        spectra(L, *k, r.uu, r.uv, r.vv, r.ua, r.va, r.c, r.s, r.f, r.h, r.ff, r.fh, r.hh, r.zu, r.zv);
        features(d, L, N, a, r.zu, r.zv, B);
        value = optimism(d, L, theta, V_inv, beta, B, U, r.mean, r.square);
        inner_gradient(d, L, N, a, U, r);
        gradient(d, L, N, a, U, r, grad);
    }
    return value;
}
