/* Every transfer moves exactly the bytes it says, and what it adds is exact. */
#include "check.h"

/* Complex numbers as either language has them. */
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> float_complex;
typedef std::complex<double> double_complex;
#define COMPLEX(type, re, im) type(re, im)
#define RE(z) ((z).real())
#define IM(z) ((z).imag())
#else
#include <complex.h>
typedef float complex float_complex;
typedef double complex double_complex;
#define COMPLEX(type, re, im) ((type)((re) + (im) * I))
#define RE(z) creal(z)
#define IM(z) cimag(z)
#endif

static int me, nproc, right, left;

/* What `rank` writes at `index`: a small whole number, so that sums of any type are exact. */
static double value(int rank, int index) { return 1 + rank + 7 * (index % 13); }

static void contiguous(void) {
    enum { N = 50000 }; /* more than one message holds */
    double *there = doubles(N), *back = doubles(N);
    void **base = allocate(N * sizeof *there);
    for (int i = 0; i < N; i++) there[i] = value(me, i);
    CHECK(ARMCI_Put(there, base[right], N * sizeof *there, right) == 0);
    memset(there, 0, N * sizeof *there); /* locally complete */
    CHECK(ARMCI_Get(base[right], back, N * sizeof *back, right) == 0); /* in order */
    for (int i = 0; i < N; i++) CHECK(back[i] == value(me, i));
    ARMCI_Barrier();
    for (int i = 0; i < N; i++) CHECK(((double *)base[me])[i] == value(left, i));

    /* Inside the part, at odd bytes, out of memory of our own part. */
    char *bytes = (char *)base[me], odd[] = "12345", got[7];
    ARMCI_Barrier();
    memcpy(bytes, "abcdefgh", 8);
    ARMCI_Barrier();
    CHECK(ARMCI_Put(odd, (char *)base[right] + 3, 4, right) == 0);
    ARMCI_Fence(right);
    ARMCI_Barrier();
    CHECK(memcmp(bytes, "abc1234h", 8) == 0);
    CHECK(ARMCI_Put(bytes, (char *)base[right] + 101, 7, right) == 0);
    ARMCI_AllFence();
    CHECK(ARMCI_Get((char *)base[right] + 101, got, 7, right) == 0);
    CHECK(memcmp(got, "abc1234", 7) == 0);

    /* Nothing is nothing, wherever. */
    CHECK(ARMCI_Put(NULL, NULL, 0, right) == 0);
    CHECK(ARMCI_Get(base[right], NULL, 0, right) == 0);
    ARMCI_Barrier();
    release(base);
    free(there);
    free(back);
}

static void values(void) {
    void **base = allocate(64);
    char *there = (char *)base[right];
    CHECK(ARMCI_PutValueInt(-5 - me, there, right) == 0);
    CHECK(ARMCI_PutValueLong(1L << 40 | me, there + 8, right) == 0);
    CHECK(ARMCI_PutValueFloat(0.5f + me, there + 16, right) == 0);
    CHECK(ARMCI_PutValueDouble(1e100 * (me + 1), there + 24, right) == 0);
    ARMCI_Barrier();
    CHECK(*(int *)base[me] == -5 - left);
    CHECK(ARMCI_GetValueInt(there, right) == -5 - me);
    CHECK(ARMCI_GetValueLong(there + 8, right) == (1L << 40 | me));
    CHECK(ARMCI_GetValueFloat(there + 16, right) == 0.5f + me);
    CHECK(ARMCI_GetValueDouble(there + 24, right) == 1e100 * (me + 1));
    ARMCI_Barrier();
    release(base);
}

/* A patch of 3 planes of 5 rows of 6 doubles, in arrays of different shapes. */
enum { PLANES = 3, ROWS = 5, ROW = 6 };
typedef double here_t[PLANES][ROWS + 2][ROW + 1];
typedef double there_t[PLANES + 1][ROWS + 4][ROW + 5];
static int here_strides[] = {sizeof(double[ROW + 1]), sizeof(double[ROWS + 2][ROW + 1])};
static int there_strides[] = {sizeof(double[ROW + 5]), sizeof(double[ROWS + 4][ROW + 5])};
static int patch[] = {sizeof(double[ROW]), ROWS, PLANES};

static int inside(int plane, int row, int column) {
    return plane >= 1 && row >= 2 && row < 2 + ROWS && column >= 3 && column < 3 + ROW;
}

static void strided(void) {
    void **base = allocate(sizeof(there_t));
    there_t *mine = (there_t *)base[me], *theirs = (there_t *)base[right];
    here_t here, back;
    memset(mine, 0, sizeof *mine);
    for (int p = 0; p < PLANES; p++)
        for (int r = 0; r < ROWS + 2; r++)
            for (int c = 0; c < ROW + 1; c++) here[p][r][c] = value(me, 100 * p + 10 * r + c);
    memset(back, 0, sizeof back);
    ARMCI_Barrier();
    CHECK(ARMCI_PutS(here, here_strides, &(*theirs)[1][2][3], there_strides, patch, 2, right) == 0);
    CHECK(ARMCI_GetS(&(*theirs)[1][2][3], there_strides, back, here_strides, patch, 2, right) == 0);
    double scale = 3;
    CHECK(ARMCI_AccS(ARMCI_ACC_DBL, &scale, here, here_strides, &(*theirs)[1][2][3], there_strides, patch, 2, right) == 0);
    ARMCI_Barrier();
    for (int p = 0; p < PLANES; p++)
        for (int r = 0; r < ROWS + 2; r++)
            for (int c = 0; c < ROW + 1; c++) CHECK(back[p][r][c] == (r < ROWS && c < ROW ? here[p][r][c] : 0));
    for (int p = 0; p < PLANES + 1; p++)
        for (int r = 0; r < ROWS + 4; r++)
            for (int c = 0; c < ROW + 5; c++)
                CHECK((*mine)[p][r][c] == (inside(p, r, c) ? 4 * value(left, 100 * (p - 1) + 10 * (r - 2) + c - 3) : 0));

    /* No levels, and a count of nothing. */
    int none[] = {8, 0};
    ARMCI_Barrier();
    CHECK(ARMCI_PutS(here, NULL, theirs, NULL, patch, 0, right) == 0);
    CHECK(ARMCI_PutS(here, here_strides, theirs, there_strides, none, 1, right) == 0);
    ARMCI_Barrier();
    for (int c = 0; c < ROW; c++) CHECK((*mine)[0][0][c] == value(left, c));
    ARMCI_Barrier();
    release(base);
}

/* Everybody adds to rank 0, in every type. */
#define ADDS(type, datatype, scaling)                                                        \
    static void adds_##datatype(void) {                                                      \
        enum { N = 3000 };                                                                   \
        type scale = (scaling), *mine = (type *)malloc(N * sizeof *mine);                            \
        void **base = allocate(N * sizeof *mine);                                            \
        type *sum = (type *)base[me];                                                                \
        for (int i = 0; i < N; i++) sum[i] = (type)i, mine[i] = (type)value(me, i);          \
        ARMCI_Barrier();                                                                     \
        for (int n = 0; n < 3; n++)                                                          \
            CHECK(ARMCI_Acc(datatype, &scale, mine, base[0], N * sizeof *mine, 0) == 0);     \
        ARMCI_Barrier();                                                                     \
        CHECK(ARMCI_Get(base[0], mine, N * sizeof *mine, 0) == 0);                           \
        for (int i = 0; i < N; i++) {                                                        \
            type all = 0;                                                                    \
            for (int r = 0; r < nproc; r++) all += (type)value(r, i);                        \
            CHECK(mine[i] == (type)i + (type)3 * scale * all);                                     \
        }                                                                                    \
        ARMCI_Barrier();                                                                     \
        release(base);                                                                       \
        free(mine);                                                                          \
    }
ADDS(int, ARMCI_ACC_INT, -2)
ADDS(long, ARMCI_ACC_LNG, 1L << 33)
ADDS(float, ARMCI_ACC_FLT, 0.5f)
ADDS(double, ARMCI_ACC_DBL, 1)
ADDS(float_complex, ARMCI_ACC_CPL, COMPLEX(float_complex, 2, 0.5f))
ADDS(double_complex, ARMCI_ACC_DCP, COMPLEX(double_complex, -1, 4))

/* Complex numbers inside structs whose size is no multiple of theirs. */
static void complex_members(void) {
    struct particle { double mass; double_complex z; };
    enum { N = 40 };
    struct particle *here = (struct particle *)malloc(N * sizeof *here);
    void **base = allocate(N * sizeof *here);
    struct particle *mine = (struct particle *)base[me], *theirs = (struct particle *)base[0];
    for (int i = 0; i < N; i++) {
        here[i].mass = mine[i].mass = i;
        here[i].z = COMPLEX(double_complex, value(me, i), -i);
        mine[i].z = i;
    }
    ARMCI_Barrier();
    double_complex scale = COMPLEX(double_complex, 0, 1);
    int stride[] = {sizeof *here}, count[] = {sizeof(double_complex), N};
    CHECK(ARMCI_AccS(ARMCI_ACC_DCP, &scale, &here->z, stride, &theirs->z, stride, count, 1, 0) == 0);
    ARMCI_Barrier();
    if (me == 0)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int r = 0; r < nproc; r++) sum += value(r, i);
            CHECK(mine[i].mass == i);
            CHECK(RE(mine[i].z) == i + (double)nproc * i && IM(mine[i].z) == sum);
        }
    ARMCI_Barrier();
    release(base);
    free(here);
}

static void vectors(void) {
    enum { N = 20 };
    long here[N], back[N];
    void **base = allocate(2 * N * sizeof(long)), *from[N], *to[N], *into[N];
    long *mine = (long *)base[me], *theirs = (long *)base[right];
    memset(mine, 0, 2 * N * sizeof(long));
    for (int i = 0; i < N; i++) {
        here[i] = 1000L * me + i;
        from[i] = &here[i];
        to[i] = &theirs[2 * (N - 1 - i)]; /* backwards, every second one */
        into[i] = &back[i];
    }
    armci_giov_t put[] = {{from, to, sizeof(long), N / 2}, {from + N / 2, to + N / 2, sizeof(long), N - N / 2}, {NULL, NULL, 8, 0}};
    armci_giov_t get = {to, into, sizeof(long), N};
    ARMCI_Barrier();
    CHECK(ARMCI_PutV(put, 3, right) == 0);
    CHECK(ARMCI_GetV(&get, 1, right) == 0);
    CHECK(memcmp(here, back, sizeof here) == 0);
    long scale = -3;
    CHECK(ARMCI_AccV(ARMCI_ACC_LNG, &scale, put, 2, right) == 0);
    CHECK(ARMCI_PutV(NULL, 0, right) == 0);
    ARMCI_Barrier();
    for (int i = 0; i < N; i++) CHECK(mine[2 * (N - 1 - i)] == -2 * (1000L * left + i) && mine[2 * i + 1] == 0);
    ARMCI_Barrier();
    release(base);
}

static void read_modify_write(void) {
    enum { DRAWS = 500 };
    void **base = allocate(32);
    int *count = (int *)base[0], held;
    long *long_count = (long *)base[0] + 1, long_held, drawn = 0;
    if (me == 0) *count = -7, *long_count = 1L << 40;
    ARMCI_Barrier();
    for (int i = 0, last = -8; i < DRAWS; i++) {
        CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &held, count, 2, 0) == 0);
        CHECK(held > last);
        last = held;
        CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &long_held, long_count, -1, 0) == 0);
        drawn += long_held;
    }
    armci_msg_lgop(&drawn, 1, (char *)"+"); /* each number was drawn once */
    long draws = (long)DRAWS * nproc;
    CHECK(drawn == draws * (1L << 40) - draws * (draws - 1) / 2);
    CHECK(ARMCI_GetValueInt(count, 0) == -7 + 2 * draws);
    CHECK(ARMCI_GetValueLong(long_count, 0) == (1L << 40) - draws);
    ARMCI_Barrier();

    /* Everybody swaps its own number in: what came out and what is left is all there was. */
    held = 1 << me;
    long_held = 1L << (40 + me);
    CHECK(ARMCI_PutValueInt(1 << 20, count, 0) == 0 && ARMCI_PutValueLong(1L << 20, long_count, 0) == 0);
    ARMCI_Barrier();
    CHECK(ARMCI_Rmw(ARMCI_SWAP, &held, count, 0, 0) == 0);
    CHECK(ARMCI_Rmw(ARMCI_SWAP_LONG, &long_held, long_count, 0, 0) == 0);
    armci_msg_igop(&held, 1, (char *)"+");
    armci_msg_lgop(&long_held, 1, (char *)"+");
    CHECK(held + ARMCI_GetValueInt(count, 0) == (1 << 20) + (1 << nproc) - 1);
    CHECK(long_held + ARMCI_GetValueLong(long_count, 0) == (1L << 20) + (((1L << nproc) - 1) << 40));
    ARMCI_Barrier();
    release(base);
}

int main(int argc, char **argv) {
    start_mpi();
    CHECK(ARMCI_Init_args(&argc, &argv) == 0);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    right = (me + 1) % nproc;
    left = (me + nproc - 1) % nproc;
    contiguous();
    values();
    strided();
    adds_ARMCI_ACC_INT();
    adds_ARMCI_ACC_LNG();
    adds_ARMCI_ACC_FLT();
    adds_ARMCI_ACC_DBL();
    adds_ARMCI_ACC_CPL();
    adds_ARMCI_ACC_DCP();
    complex_members();
    vectors();
    read_modify_write();
    CHECK(ARMCI_Finalize() == 0);
    end_mpi();
    puts("done");
    return 0;
}
