"""Parts of a plan that are taken from registries: kernels and routes, with their facts and their work."""
