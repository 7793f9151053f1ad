/* What a program finds as libcuda.so.1 on a machine whose NVIDIA driver is too old for CUDA 13's runtime. */
int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
