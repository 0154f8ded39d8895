// Tensor-core product of half matrices: cp.async stages, XOR swizzle, ldmatrix, mma.sync. STAGES is set by the test.
__device__ __forceinline__ unsigned smem(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void copy16(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}
extern "C" __global__ void __launch_bounds__(128)
hgemm(const unsigned short* __restrict__ A, const unsigned short* __restrict__ B, float* C, int M, int N, int K) {
  extern __shared__ __align__(16) unsigned char dyn[];
  unsigned base = smem(dyn);
  const int t = threadIdx.x, lane = t % 32, w = t / 32, wm = (w / 2) * 64, wn = (w % 2) * 64;
  const int m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
  const int tiles = (K + 31) / 32;
  float acc[4][8][4];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) acc[i][j][e] = 0;
  auto load = [&](int tile) {
    int s = tile % STAGES;
    unsigned a = base + s * 8192, b = base + STAGES * 8192 + s * 8192;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int e = t + i * 128, r = e / 4, c = e % 4, k = tile * 32 + c * 8;
      bool in = m0 + r < M && k < K;                                   // guard A
      copy16(a + (r * 4 + (c ^ ((r >> 1) & 3))) * 16, in ? &A[(m0 + r) * K + k] : A, in ? 16 : 0);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int e = t + i * 128, r = e / 16, c = e % 16, n = n0 + c * 8;
      bool in = tile * 32 + r < K && n < N;                            // guard B
      copy16(b + (r * 16 + (c ^ (r & 7))) * 16, in ? &B[(tile * 32 + r) * N + n] : B, in ? 16 : 0);
    }
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) {
    if (s < tiles) load(s);
    asm volatile("cp.async.commit_group;");
  }
  for (int it = 0; it < tiles; it++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));         // wait
    __syncthreads();
    if (it + STAGES - 1 < tiles) load(it + STAGES - 1);
    asm volatile("cp.async.commit_group;");                            // commit
    unsigned a = base + (it % STAGES) * 8192, b = base + STAGES * 8192 + (it % STAGES) * 8192;
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned fa[4][4], fb[8][2];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int r = wm + 16 * i + lane % 16, c = kk / 8 + lane / 16;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                     : "r"(a + (r * 4 + (c ^ ((r >> 1) & 3))) * 16));
      }
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        int r = kk + lane % 16, c = (wn + 8 * j) / 8 + lane / 16;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1])
                     : "r"(b + (r * 16 + (c ^ (r & 7))) * 16));
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                       : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                       : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
    }
  }
  const int g = lane / 4, q = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      int r = m0 + wm + 16 * i + g, c = n0 + wn + 8 * j + 2 * q;
      if (r < M && c < N) *(float2*)&C[r * N + c] = make_float2(acc[i][j][0], acc[i][j][1]);          // store low
      if (r + 8 < M && c < N) *(float2*)&C[(r + 8) * N + c] = make_float2(acc[i][j][2], acc[i][j][3]);  // store high
    }
}
