"""What is true: one contract, several stores."""
