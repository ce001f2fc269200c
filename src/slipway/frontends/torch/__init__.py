"""PyTorch: programs of ``torch.export`` become relay functions."""
