"""The optimal plan: what users keep and how much noise, a linear program with a certificate.

docs/theory/optimal.md. Arrays only: `problem.TargetProblem` in, `solution.Solution` out.
"""
