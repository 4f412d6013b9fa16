"""Plans: blocks and cycles of actions, and bounds on what any policy can collect.

| module      | owns                                                              |
|-------------|-------------------------------------------------------------------|
| `plans`     | the results: `Plan`, `Cycle`, `OptBounds`                         |
| `objective` | `block_ucb`, and the checks of what a learner believes            |
| `effort`    | how hard the ball is searched, one name for each purpose          |
| `blocks`    | `plan_block`, `best_block`                                        |
| `cycles`    | `best_cycle`, and what a cycle collects when it is played         |
| `bounds`    | `opt_bounds`                                                      |
| `finite`    | the same for sets of arms, planned exactly where that is possible |
"""
