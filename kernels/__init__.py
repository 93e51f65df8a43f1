"""Number crunching on GPU and CPU: the ground floor. Import it as ``seawall.kernels``."""
