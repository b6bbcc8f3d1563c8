"""Pictures of public facts."""
