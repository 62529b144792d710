"""What `fornax bench torch` measures: networks of PyTorch on Fornax, beside eager torch and Inductor."""
