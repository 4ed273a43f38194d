"""What was written: YAML files read into the model, every mistake with its place."""
