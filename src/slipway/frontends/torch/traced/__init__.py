"""TorchScript: traced and scripted modules and functions, and models quantised by torch.ao."""
