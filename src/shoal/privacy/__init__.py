"""What a release costs and draws: budgets, units of privacy, exact noise, selections."""
