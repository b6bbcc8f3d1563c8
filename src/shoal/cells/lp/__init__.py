"""The optimal plan: what users keep and how much noise, a linear program with a certificate.

Theory 2, section 4. Arrays only: `problem.TargetProblem` in, `solution.Solution` out.
"""
