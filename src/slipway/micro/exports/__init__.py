"""What generated projects hold beside the model: files for other build systems, and words."""
