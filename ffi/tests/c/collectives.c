/* Joining, memory, broadcasts and global operations. */
#include "check.h"

enum { MOST = 16 }; /* ranks */
static int me, nproc;

/* Parts differ in size; some are empty. */
static void uneven_memory(void) {
    void *base[MOST];
    for (int round = 0; round < 3; round++) {
        long bytes = (me + round) % 2 == 0 ? 0 : 1000 * me + 8;
        CHECK(ARMCI_Malloc(base, bytes) == 0);
        for (int r = 0; r < nproc; r++) CHECK((base[r] == NULL) == ((r + round) % 2 == 0));
        if (base[me]) memset(base[me], 'a' + me, bytes);
        ARMCI_Barrier();
        for (int r = 0; r < nproc; r++) {
            char last = 0;
            if (base[r]) CHECK(ARMCI_Get((char *)base[r] + 1000 * r + 7, &last, 1, r) == 0 && last == 'a' + r);
        }
        CHECK(ARMCI_Free(base[me]) == 0);
    }
    memset(base, 1, sizeof base);
    CHECK(ARMCI_Malloc(base, 0) == 0);
    for (int r = 0; r < nproc; r++) CHECK(base[r] == NULL);
    CHECK(ARMCI_Free(NULL) == 0);
}

/* Many allocations at once, freed in another order. */
static void many_allocations(void) {
    enum { N = 20 };
    void **base[N];
    for (int i = 0; i < N; i++) {
        base[i] = allocate(1 + 100 * i);
        *(char *)base[i][me] = (char)i;
    }
    ARMCI_Barrier();
    for (int i = 0; i < N; i++)
        for (int r = 0; r < nproc; r++) {
            char first;
            CHECK(ARMCI_Get(base[i][r], &first, 1, r) == 0 && first == i);
        }
    ARMCI_Barrier();
    for (int i = 0; i < N; i += 2) release(base[i]);
    for (int i = 1; i < N; i += 2) release(base[i]);
}

static void broadcasts(void) {
    enum { N = 100001 }; /* more than one round holds */
    char *buffer = (char *)malloc(N);
    for (int root = 0; root < nproc; root++) {
        memset(buffer, me == root ? 'A' + root : 0, N);
        root % 2 ? armci_msg_bcast(buffer, N, root) : armci_msg_brdcst(buffer, N, root);
        for (int i = 0; i < N; i++) CHECK(buffer[i] == 'A' + root);
    }
    armci_msg_brdcst(NULL, 0, 0);
    free(buffer);
}

/* What is asked of bits, and of truth: by each of its names. */
static void logic(void) {
    static char ops[][7] = {"&", "band", "|", "bor", "or  ", "&&", "land", "||", "lor"};
    for (int op = 0; op < 9; op++) {
        int x[3] = {1 << me, 6 + me % 2, me == 0 ? 0 : 4};
        long y = me + 2;
        armci_msg_igop(x, 3, ops[op]);
        armci_msg_lgop(&y, 1, ops[op]);
        if (op < 2) CHECK(x[0] == (nproc == 1) && x[1] == 6 && x[2] == 0);
        else if (op < 5) CHECK(x[0] == (1 << nproc) - 1 && x[1] == 6 + (nproc > 1) && x[2] == (nproc > 1 ? 4 : 0));
        else CHECK(x[0] == 1 && x[1] == 1 && x[2] == (op > 6 && nproc > 1) && y == 1);
    }
}

/* Element i of rank r is (r + 1) * (i % 3 - 1) * (r odd ? -1 : 1): all signs, and exact in every type. */
#define GOPS(type, gop)                                                                          \
    static void check_##gop(void) {                                                              \
        static char ops[][7] = {"+", "*", "max", "min", "absmax", "absmin", "max  "};               \
        enum { N = 5000 };                                                                       \
        type *x = (type *)malloc(N * sizeof *x);                                                         \
        for (int op = 0; op < 7; op++) {                                                         \
            for (int i = 0; i < N; i++) x[i] = (type)((me + 1) * (i % 3 - 1) * (me % 2 ? -1 : 1)); \
            gop(x, N, ops[op]);                                                                  \
            for (int i = 0; i < N; i++) {                                                        \
                type want = 0;                                                                   \
                for (int r = 0; r < nproc; r++) {                                                \
                    type y = (type)((r + 1) * (i % 3 - 1) * (r % 2 ? -1 : 1));                   \
                    if (op == 4 || op == 5) y = y < 0 ? -y : y;                                  \
                    if (r == 0) want = y;                                                        \
                    else if (op == 0) want += y;                                                 \
                    else if (op == 1) want *= y;                                                 \
                    else if (op == 3 || op == 5) want = y < want ? y : want;                     \
                    else want = y > want ? y : want;                                             \
                }                                                                                \
                CHECK(x[i] == want);                                                             \
            }                                                                                    \
        }                                                                                        \
        gop(NULL, 0, ops[0]);                                                                     \
        free(x);                                                                                 \
    }
GOPS(int, armci_msg_igop)
GOPS(long, armci_msg_lgop)
GOPS(long long, armci_msg_llgop)
GOPS(float, armci_msg_fgop)
GOPS(double, armci_msg_dgop)

int main(void) {
    start_mpi();
    if (ARMCI_Initialized()) return 1;
    CHECK(ARMCI_Finalize() == 0); /* of nothing */
    CHECK(ARMCI_Init() == 0);
    CHECK(ARMCI_Init() == 0);
    CHECK(ARMCI_Initialized());
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    CHECK(me >= 0 && me < nproc && nproc <= MOST);
    uneven_memory();
    many_allocations();
    broadcasts();
    logic();
    check_armci_msg_igop();
    check_armci_msg_lgop();
    check_armci_msg_llgop();
    check_armci_msg_fgop();
    check_armci_msg_dgop();
    CHECK(ARMCI_Finalize() == 0); /* the second ARMCI_Init */
    CHECK(ARMCI_Initialized());
    armci_msg_barrier();
    ARMCI_Cleanup();
    armci_msg_barrier();
    CHECK(ARMCI_Finalize() == 0);
    CHECK(!ARMCI_Initialized());
    CHECK(ARMCI_Finalize() == 0); /* one too many */
    end_mpi();
    puts("done");
    return 0;
}
