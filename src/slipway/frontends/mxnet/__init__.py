"""MXNet's symbols and Gluon blocks, also from their files: nodes become relay calls."""
