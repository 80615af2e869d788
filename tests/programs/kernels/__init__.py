"""Small programs whose CUDA kernels Triton's interpreter runs on the CPU."""
