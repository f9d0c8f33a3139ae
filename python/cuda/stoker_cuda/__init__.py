"""The CUDA plugins of stoker: libstoker_cuda.so feeds GPUs, libstoker_cuda_train.so trains on them.
The package `stoker` of the same version opens them here; there is nothing to import.
"""
