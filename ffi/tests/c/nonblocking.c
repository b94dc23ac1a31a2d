/* Handles, aggregation, and all that is begun by one call and waited for by another. */
#include "check.h"

enum { N = 5000 };
static int me, nproc, right, left;

static void contiguous(void) {
    double *from = doubles(N), *into = doubles(N), one = 1;
    void **base = allocate(N * sizeof(double));
    double *mine = (double *)base[me];
    armci_hdl_t put, get;
    ARMCI_INIT_HANDLE(&put);
    ARMCI_INIT_HANDLE(&get);
    for (int i = 0; i < N; i++) from[i] = me + i, into[i] = -1;
    CHECK(ARMCI_NbPut(from, base[right], N * sizeof(double), right, &put) == 0);
    CHECK(ARMCI_NbGet(base[right], into, N * sizeof(double), right, &get) == 0);
    while (ARMCI_Test(&get)) continue;
    CHECK(ARMCI_Wait(&get) == 0);
    CHECK(ARMCI_Wait(&put) == 0);
    CHECK(ARMCI_Wait(&put) == 0); /* of nothing */
    for (int i = 0; i < N; i++) CHECK(into[i] == me + i);
    CHECK(ARMCI_NbAcc(ARMCI_ACC_DBL, &one, from, base[right], N * sizeof(double), right, &put) == 0);
    CHECK(ARMCI_Wait(&put) == 0);
    ARMCI_Barrier();
    for (int i = 0; i < N; i++) CHECK(mine[i] == 2.0 * (left + i));
    ARMCI_Barrier();

    /* Without a handle; each by its rank, and all. */
    for (int i = 0; i < N; i++) into[i] = -1;
    CHECK(ARMCI_NbGet(base[right], into, N / 2 * sizeof(double), right, NULL) == 0);
    CHECK(ARMCI_WaitProc(right) == 0);
    for (int i = 0; i < N / 2; i++) CHECK(into[i] == 2.0 * (me + i));
    CHECK(ARMCI_NbGet((double *)base[right] + N / 2, into + N / 2, N / 2 * sizeof(double), right, &get) == 0);
    CHECK(ARMCI_WaitAll() == 0); /* those with handles too */
    for (int i = N / 2; i < N; i++) CHECK(into[i] == 2.0 * (me + i));
    ARMCI_Barrier();
    release(base);
    free(from);
    free(into);
}

static void patches(void) {
    enum { ROWS = 6, ROW = 5, WIDE = 9 };
    long here[ROWS][ROW], back[ROWS][WIDE], scale = 2;
    int dense[] = {(int)sizeof here[0]}, wide[] = {(int)sizeof back[0]}, count[] = {(int)sizeof here[0], ROWS};
    void **base = allocate(sizeof back);
    long(*mine)[WIDE] = (long(*)[WIDE])base[me];
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    memset(mine, 0, sizeof back);
    memset(back, 0, sizeof back);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < ROW; c++) here[r][c] = 100 * me + 10 * r + c;
    ARMCI_Barrier();
    CHECK(ARMCI_NbPutS(here, dense, base[right], wide, count, 1, right, &handle) == 0);
    CHECK(ARMCI_NbAccS(ARMCI_ACC_LNG, &scale, here, dense, base[right], wide, count, 1, right, &handle) == 0);
    CHECK(ARMCI_NbGetS(base[right], wide, back, wide, count, 1, right, &handle) == 0);
    CHECK(ARMCI_Wait(&handle) == 0);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < WIDE; c++) CHECK(back[r][c] == (c < ROW ? 3 * here[r][c] : 0));
    ARMCI_Barrier();
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < ROW; c++) CHECK(mine[r][c] == 3 * (100 * left + 10 * r + c));
    ARMCI_Barrier();

    void *from[ROWS], *to[ROWS], *into[ROWS];
    memset(back, 0, sizeof back);
    for (int r = 0; r < ROWS; r++) {
        from[r] = here[r];
        to[r] = (char *)base[right] + (ROWS - 1 - r) * sizeof back[0];
        into[r] = back[r];
    }
    armci_giov_t out = {from, to, (int)sizeof here[0], ROWS}, in = {to, into, (int)sizeof here[0], ROWS};
    CHECK(ARMCI_NbPutV(&out, 1, right, &handle) == 0);
    CHECK(ARMCI_NbAccV(ARMCI_ACC_LNG, &scale, &out, 1, right, NULL) == 0);
    CHECK(ARMCI_NbGetV(&in, 1, right, &handle) == 0);
    CHECK(ARMCI_Wait(&handle) == 0);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < ROW; c++) CHECK(back[r][c] == 3 * here[r][c]);
    ARMCI_Barrier();
    release(base);
}

static void values(void) {
    void **base = allocate(64);
    char *there = (char *)base[right];
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    CHECK(ARMCI_NbPutValueInt(-me, there, right, &handle) == 0);
    CHECK(ARMCI_NbPutValueLong(1L << 40, there + 8, right, &handle) == 0);
    CHECK(ARMCI_NbPutValueFloat(1.5f, there + 16, right, NULL) == 0);
    CHECK(ARMCI_NbPutValueDouble(2.5 * me, there + 24, right, &handle) == 0);
    CHECK(ARMCI_Wait(&handle) == 0);
    ARMCI_Barrier();
    CHECK(*(int *)base[me] == -left && *(long *)((char *)base[me] + 8) == 1L << 40);
    CHECK(*(float *)((char *)base[me] + 16) == 1.5f && *(double *)((char *)base[me] + 24) == 2.5 * left);
    ARMCI_Barrier();
    release(base);
}

static void aggregates(void) {
    double *from = doubles(N), *into = doubles(N), one = 1;
    void **base = allocate(N * sizeof(double));
    double *mine = (double *)base[me], *theirs = (double *)base[right];
    armci_hdl_t handle;
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_SET_AGGREGATE_HANDLE(&handle);
    ARMCI_SET_AGGREGATE_HANDLE(&handle); /* once is enough */
    for (int i = 0; i < N; i++) {
        from[i] = me + i;
        CHECK(ARMCI_NbPut(from + i, theirs + i, sizeof(double), right, &handle) == 0);
    }
    CHECK(ARMCI_Wait(&handle) == 0);
    for (int i = 0; i < N; i++) {
        CHECK(ARMCI_NbAcc(ARMCI_ACC_DBL, &one, from + i, theirs + i, sizeof(double), right, &handle) == 0);
        from[i] = -1; /* copied */
    }
    ARMCI_Barrier(); /* sends them */
    for (int i = 0; i < N; i++) CHECK(mine[i] == 2.0 * (left + i));
    int count[] = {16, 3}, stride[] = {32};
    for (int i = 0; i < N; i++) CHECK(ARMCI_NbGet(theirs + i, into + i, sizeof(double), right, &handle) == 0);
    CHECK(ARMCI_NbGetS(theirs, stride, from, stride, count, 1, right, &handle) == 0);
    CHECK(ARMCI_Test(&handle) == 0);
    for (int i = 0; i < N; i++) CHECK(into[i] == 2.0 * (me + i));
    CHECK(from[9] == into[9] && from[10] == -1);
    ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
    CHECK(ARMCI_NbGet(theirs, from, sizeof(double), right, &handle) == 0);
    CHECK(ARMCI_Wait(&handle) == 0 && from[0] == 2.0 * me);
    ARMCI_Barrier();
    release(base);
    free(from);
    free(into);
}

int main(void) {
    start_mpi();
    CHECK(PARMCI_Init() == 0);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    right = (me + 1) % nproc;
    left = (me + nproc - 1) % nproc;
    contiguous();
    patches();
    values();
    aggregates();
    CHECK(PARMCI_Finalize() == 0);
    end_mpi();
    puts("done");
    return 0;
}
