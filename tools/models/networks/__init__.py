"""One file for each family of networks; tools/models/catalogue.py lists the networks that they make."""
