/* The rest of the message layer, domains, mutexes, flags, notices, local memory, packing. */
#include "check.h"

static int me, nproc, right, left;
static char plus[] = "+", max[] = "max", min[] = "min";

static void send_and_receive(void) {
    enum { LONG = 200000 };
    char *out = (char *)malloc(LONG), *in = (char *)malloc(LONG);
    int length = -1, number = 100 + me;
    memset(out, 'a' + me, LONG);
    armci_msg_snd(7, &number, sizeof number, right);
    armci_msg_rcv(7, &number, sizeof number, &length, left);
    CHECK(number == 100 + left && length == (int)sizeof number);
    if (nproc > 1) { /* a long message waits for its receive */
        if (me % 2 == 0) armci_msg_snd(8, out, LONG, right);
        armci_msg_rcv(8, in, LONG, NULL, left);
        if (me % 2) armci_msg_snd(8, out, LONG, right);
        CHECK(in[0] == 'a' + left && in[LONG - 1] == 'a' + left);
    }
    armci_msg_barrier();
    if (me != 0) armci_msg_snd(9, &me, sizeof me, 0);
    else
        for (int i = 1, seen = 0; i < nproc; i++) {
            int from = armci_msg_rcvany(9, &number, sizeof number, &length);
            CHECK(from == number && !(seen & 1 << from));
            seen |= 1 << from;
        }
    armci_msg_barrier();
    free(out);
    free(in);
}

static void scopes(void) {
    int root, up, l, r, sum = 1, here = armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1);
    armci_msg_bintree(SCOPE_ALL, &root, &up, &l, &r);
    CHECK(root == 0 && up == (me ? (me - 1) / 2 : -1));
    CHECK(l == (2 * me + 1 < nproc ? 2 * me + 1 : -1) && r == (2 * me + 2 < nproc ? 2 * me + 2 : -1));
    armci_msg_gop_scope(SCOPE_NODE, &sum, 1, plus, ARMCI_INT);
    CHECK(sum == here);
    armci_msg_gop_scope(SCOPE_MASTERS, &sum, 1, plus, ARMCI_INT);
    int master = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, armci_domain_my_id(ARMCI_DOMAIN_SMP), 0);
    CHECK(sum == (me == master ? nproc : here));
    armci_msg_bcast_scope(SCOPE_NODE, &sum, sizeof sum, master);
    CHECK(sum == nproc);
    int told = me == master ? 5 : 0, most = me, sums[] = {1, 2};
    long wide = 1;
    long long wider = 2;
    float low = (float)me;
    double high = me;
    armci_msg_clus_brdcst(&told, sizeof told);
    armci_msg_clus_igop(&most, 1, max);
    armci_msg_clus_lgop(&wide, 1, plus);
    armci_msg_clus_llgop(&wider, 1, plus);
    armci_msg_clus_fgop(&low, 1, min);
    armci_msg_clus_dgop(&high, 1, max);
    CHECK(told == 5 && most == master + here - 1 && wide == here && wider == 2 * here);
    CHECK(low == (float)master && high == master + here - 1);
    armci_msg_reduce(sums, 2, plus, ARMCI_INT);
    if (me == 0) CHECK(sums[0] == nproc && sums[1] == 2 * nproc);
    armci_msg_reduce_scope(SCOPE_ALL, &high, 1, max, ARMCI_DOUBLE);
    void **table = (void **)calloc((size_t)nproc, sizeof *table);
    table[me] = (void *)(long)(me + 1);
    armci_exchange_address(table, nproc);
    for (int i = 0; i < nproc; i++) CHECK(table[i] == (void *)(long)(i + 1));
    free(table);
}

static void selection(void) {
    struct { double key; int rank; } record = {me == nproc - 1 ? 9.0 : 4.0, me}, lowest = {-1.0 * me, me};
    armci_msg_sel(&record, sizeof record, max, ARMCI_DOUBLE, me != nproc - 1 || nproc == 1);
    CHECK(record.rank == 0);
    armci_msg_sel_scope(SCOPE_ALL, &lowest, sizeof lowest, min, ARMCI_DOUBLE, 1);
    CHECK(lowest.rank == nproc - 1);
    long number = me;
    armci_msg_sel(&number, sizeof number, max, ARMCI_LONG, 0); /* nobody */
    CHECK(number == me);
}

/* NODES in the environment says how many nodes there must be. */
static void domains(void) {
    const char *wanted = getenv("NODES");
    int nodes = armci_domain_count(ARMCI_DOMAIN_SMP), mine = armci_domain_my_id(ARMCI_DOMAIN_SMP), rank = 0;
    CHECK(nodes == (wanted ? atoi(wanted) : 1) && mine == armci_domain_id(ARMCI_DOMAIN_SMP, me));
    CHECK(armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1) == armci_domain_nprocs(ARMCI_DOMAIN_SMP, mine));
    for (int node = 0; node < nodes; node++) { /* each has ranks that follow each other */
        for (int i = 0; i < armci_domain_nprocs(ARMCI_DOMAIN_SMP, node); i++, rank++) {
            CHECK(armci_domain_id(ARMCI_DOMAIN_SMP, rank) == node);
            CHECK(armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, node, i) == rank);
            CHECK(armci_domain_same_id(ARMCI_DOMAIN_SMP, rank) == (node == mine));
            CHECK(ARMCI_Same_node(rank) == (node == mine));
        }
    }
    CHECK(rank == nproc && ARMCI_Uses_shm() == 1);
}

static void mutexes(void) {
    enum { ROUNDS = 200 };
    void **base = allocate(sizeof(long));
    *(long *)base[me] = 0;
    CHECK(ARMCI_Create_mutexes(2) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        ARMCI_Lock(1, 0);
        ARMCI_PutValueLong(ARMCI_GetValueLong(base[0], 0) + 1, base[0], 0);
        ARMCI_Unlock(1, 0);
    }
    ARMCI_Barrier();
    CHECK(ARMCI_GetValueLong(base[0], 0) == (long)ROUNDS * nproc);
    CHECK(ARMCI_Destroy_mutexes() == 0);
    CHECK(ARMCI_Create_mutexes(me) == 0); /* perhaps none */
    CHECK(ARMCI_Destroy_mutexes() == 0);
    release(base);
}

static void flags_and_notices(void) {
    enum { N = 3000 };
    struct part { double data[N]; int flag, strided_flag; };
    void **base = allocate(sizeof(struct part));
    struct part *mine = (struct part *)base[me], *theirs = (struct part *)base[right];
    memset(mine, 0, sizeof *mine);
    double *from = doubles(N);
    ARMCI_Barrier();
    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < N; i++) from[i] = me + round * i;
        CHECK(ARMCI_Put_flag(from, theirs->data, sizeof theirs->data, &theirs->flag, round, right) == 0);
        while (ARMCI_GetValueInt(&mine->flag, me) != round) continue;
        for (int i = 0; i < N; i++) CHECK(mine->data[i] == left + round * i);
        armci_msg_barrier();
        int stride[] = {16}, count[] = {8, N / 2};
        for (int i = 0; i < N; i++) from[i] = -from[i];
        CHECK(ARMCI_PutS_flag(from, stride, theirs->data, stride, count, 1, &theirs->strided_flag, round, right) == 0);
        while (ARMCI_GetValueInt(&mine->strided_flag, me) != round) continue;
        for (int i = 0; i < N; i += 2) CHECK(mine->data[i] == -(left + round * i));
        CHECK(mine->data[1] == left + round);
        armci_msg_barrier();
        CHECK(ARMCI_Put(from, theirs->data, sizeof(double), right) == 0);
        int told = 0;
        CHECK(armci_notify(right) == round);
        CHECK(armci_notify_wait(left, round % 2 ? &told : NULL) == 0 && (told == round || round % 2 == 0));
        ARMCI_Access_begin(mine->data);
        CHECK(mine->data[0] == -left);
        ARMCI_Access_end(mine->data);
        armci_msg_barrier();
    }
    release(base);
    free(from);
}

static void local_memory(void) {
    char *mine = (char *)ARMCI_Malloc_local(1000), *none = (char *)ARMCI_Malloc_local(0), copy[4];
    void **table = (void **)malloc((size_t)nproc * sizeof *table), *wide[16];
    CHECK(mine != NULL && none == NULL && nproc <= 16);
    memset(mine, 'a' + me, 1000);
    table[me] = mine;
    armci_exchange_address(table, nproc);
    CHECK(ARMCI_Get((char *)table[right] + 500, copy, 4, right) == 0 && copy[3] == 'a' + right);
    ARMCI_Copy(mine, mine + 1, 10);
    CHECK(mine[10] == 'a' + me);
    ARMCI_Barrier();
    CHECK(ARMCI_Free_local(mine) == 0 && ARMCI_Free_local(NULL) == 0);
    CHECK(ARMCI_Malloc_memdev(wide, 8, NULL) == 0 && ARMCI_Free_memdev(wide[me]) == 0);
    ARMCI_Set_shm_limit(1);
    free(table);
}

static void packing(void) {
    char cube[3][4][8], dense[2 * 3 * 5], again[3][4][8];
    int strides[] = {8, 32}, count[] = {5, 3, 2};
    for (int i = 0; i < (int)sizeof cube; i++) ((char *)cube)[i] = (char)i;
    armci_write_strided(&cube[1][1][2], 2, strides, count, dense);
    for (int p = 0; p < 2; p++)
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 5; c++) CHECK(dense[(p * 3 + r) * 5 + c] == cube[1 + p][1 + r][2 + c]);
    memset(again, 0, sizeof again);
    armci_read_strided(&again[1][1][2], 2, strides, count, dense);
    for (int p = 0; p < 3; p++)
        for (int r = 0; r < 4; r++)
            for (int c = 0; c < 8; c++)
                CHECK(again[p][r][c] == (p >= 1 && r >= 1 && c >= 2 && c < 7 ? cube[p][r][c] : 0));
}

int main(void) {
    start_mpi();
    double begin = armci_timer();
    CHECK(ARMCI_Init() == 0);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    right = (me + 1) % nproc;
    left = (me + nproc - 1) % nproc;
    send_and_receive();
    scopes();
    selection();
    domains();
    mutexes();
    flags_and_notices();
    local_memory();
    packing();
    CHECK(armci_timer() > begin);
    CHECK(ARMCI_Finalize() == 0);
    end_mpi();
    puts("done");
    return 0;
}
