"""What a person sees: read models shared by everything that shows a run."""
