// The float32 product of the design: 128x128x8 tiles, 256 threads, 8x8 per thread in four quadrants, two stages, one barrier per tile.
extern "C" __global__ void __launch_bounds__(256, 2)
sgemm(const float* __restrict__ A, const float* __restrict__ B, float* C, int M, int N, int K) {
  __shared__ __align__(16) float As[2][8][132];
  __shared__ __align__(16) float Bs[2][8][128];
  const int t = threadIdx.x, w = t / 32, l = t % 32;
  const int cy = (w / 2) * 4 + l / 8, cx = (w % 2) * 8 + l % 8;
  const int m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
  const int ar = t / 2, ac = 4 * (t % 2), br = t / 32, bc = 4 * (t % 32);
  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) acc[i][j] = 0;
  const int tiles = (K + 7) / 8;
  float4 a = make_float4(0, 0, 0, 0), b = make_float4(0, 0, 0, 0);
  if (m0 + ar < M && ac < K) a = *(const float4*)&A[(m0 + ar) * K + ac];      // guard A first
  if (br < K && n0 + bc < N) b = *(const float4*)&B[br * N + n0 + bc];        // guard B first
  As[0][ac][ar] = a.x; As[0][ac + 1][ar] = a.y; As[0][ac + 2][ar] = a.z; As[0][ac + 3][ar] = a.w;
  *(float4*)&Bs[0][br][bc] = b;
  __syncthreads();                                                             // barrier first
  int s = 0;
  for (int tile = 0; tile < tiles; tile++) {
    const int k0 = (tile + 1) * 8;
    const bool more = tile + 1 < tiles;
    if (more) {
      a = make_float4(0, 0, 0, 0); b = make_float4(0, 0, 0, 0);
      if (m0 + ar < M && k0 + ac < K) a = *(const float4*)&A[(m0 + ar) * K + k0 + ac];   // guard A
      if (k0 + br < K && n0 + bc < N) b = *(const float4*)&B[(k0 + br) * N + n0 + bc];   // guard B
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
      float4 a0 = *(float4*)&As[s][k][4 * cy], a1 = *(float4*)&As[s][k][64 + 4 * cy];
      float4 b0 = *(float4*)&Bs[s][k][4 * cx], b1 = *(float4*)&Bs[s][k][64 + 4 * cx];
      float x[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w}, y[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) acc[i][j] += x[i] * y[j];
    }
    if (more) {
      const int n = s ^ 1;
      As[n][ac][ar] = a.x; As[n][ac + 1][ar] = a.y; As[n][ac + 2][ar] = a.z; As[n][ac + 3][ar] = a.w;
      *(float4*)&Bs[n][br][bc] = b;
      __syncthreads();                                                         // barrier loop
      s = n;
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int r = m0 + (i / 4) * 64 + 4 * cy + i % 4;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int c = n0 + j * 64 + 4 * cx;
      if (r < M && c < N)                                                      // guard C
        *(float4*)&C[r * N + c] = make_float4(acc[i][4 * j], acc[i][4 * j + 1], acc[i][4 * j + 2], acc[i][4 * j + 3]);
    }
  }
}
