"""The versions of the package and of its numbers, in the one place that all others read."""

__version__ = "0.2.0"

#: The version of the numbers. Raise it with a change after which some study, from the same file, would have
#: other rows, be it in the last bit; a release that leaves all bits as they are leaves it too. Rows of two
#: versions are never put into one table (experiments/study.py).
#: 1: fastlbm 0.1, whose pieces do not say so. 2: `switch > 0` on the ball, contextual sets. 3: Rolling,
#: Auto, arms for which tables are too large. 4: plans on the ball, Auto, blocks of large sets, O3M on
#: revealed sets. 5: sets of 16 arms or more under rotting.
NUMBERS = 5
