/* Groups: their ranks, memory, collectives, children, and what is written where C holds them. */
#include "check.h"

static int me, nproc;

/* A group with guards around it, to see that nothing is written past it. */
struct guarded {
    unsigned long before;
    ARMCI_Group group;
    unsigned long behind;
};
static const unsigned long GUARD = 0x5a5a5a5a5a5a5a5aUL;

static void check_guards(const struct guarded *g) { CHECK(g->before == GUARD && g->behind == GUARD); }

/* The ranks of even or of odd number, from the highest down. */
static int halves(int odd, int *list) {
    int count = 0;
    for (int r = nproc - 1; r >= 0; r--)
        if (r % 2 == odd) list[count++] = r;
    return count;
}

static void collectives(ARMCI_Group *group, int size, int rank, const int *list) {
    int sum = 1, last = list[size - 1];
    long most = me;
    long long bits = 1LL << (me + 32);
    float low = 1.5f + (float)me;
    double product = 2;
    char plus[] = "+", max[] = "max", min[] = "min", times[] = "*", either[] = "or";
    armci_msg_group_igop(&sum, 1, plus, group);
    CHECK(sum == size);
    armci_msg_group_lgop(&most, 1, max, group);
    CHECK(most == list[0]);
    armci_msg_group_llgop(&bits, 1, either, group);
    for (int i = 0; i < size; i++) bits &= ~(1LL << (list[i] + 32));
    CHECK(bits == 0);
    armci_msg_group_fgop(&low, 1, min, group);
    CHECK(low == 1.5f + (float)last);
    armci_msg_group_dgop(&product, 1, times, group);
    CHECK(product == (double)(1 << size));
    sum = rank;
    armci_msg_group_gop_scope(SCOPE_NODE, &sum, 1, plus, ARMCI_INT, group);
    for (int i = 0; i < size; i++) sum -= ARMCI_Same_node(list[i]) ? i : 0;
    CHECK(sum == 0);
    int told = me == last ? 42 : 0;
    armci_msg_group_bcast_scope(SCOPE_ALL, &told, sizeof told, last, group); /* a rank of the world */
    CHECK(told == 42);
    void **table = (void **)calloc((size_t)size, sizeof *table);
    table[rank] = &table[rank];
    armci_exchange_address_grp(table, size, group);
    for (int i = 0; i < size; i++) CHECK(table[i] != NULL);
    CHECK(table[rank] == &table[rank]);
    free(table);
    armci_msg_group_barrier(group);
#ifdef WITH_MPI
    /* And so it is for MPI. */
    MPI_Comm comm = armci_group_comm(group);
    int mpi_rank, mpi_size;
    CHECK(comm == group->comm);
    CHECK(MPI_Comm_rank(comm, &mpi_rank) == MPI_SUCCESS && mpi_rank == rank);
    CHECK(MPI_Comm_size(comm, &mpi_size) == MPI_SUCCESS && mpi_size == size);
    CHECK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    for (int i = 0; i < size; i++) sum -= list[i];
    CHECK(sum == 0);
#endif
}

static void memory(ARMCI_Group *group, int size, int rank) {
    void **base = (void **)malloc((size_t)size * sizeof *base);
    for (int round = 0; round < 3; round++) {
        CHECK(ARMCI_Malloc_group(base, rank == 0 && round == 1 ? 0 : 64, group) == 0);
        int next = (rank + 1) % size;
        if (base[rank]) *(long *)base[rank] = rank;
        armci_msg_group_barrier(group);
        if (base[next]) CHECK(ARMCI_GetValueLong(base[next], ARMCI_Absolute_id(group, next)) == next);
        armci_msg_group_barrier(group);
        CHECK(ARMCI_Free_group(base[rank], group) == 0);
    }
    CHECK(ARMCI_Malloc_group_memdev(base, 8, group, "anything") == 0);
    CHECK(ARMCI_Free_group(base[rank], group) == 0);
    CHECK(ARMCI_Malloc_group(base, 8, group) == 0); /* freed with the group */
    free(base);
}

int main(void) {
    start_mpi();
    CHECK(ARMCI_Init() == 0);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    int *list = (int *)malloc((size_t)nproc * sizeof *list), rank, size;
    ARMCI_Group world, other;
    ARMCI_Group_get_world(&world);
    CHECK(ARMCI_Group_rank(&world, &rank) == 0 && rank == me && world.rank == me && world.size == nproc);
    ARMCI_Group_size(&world, &size);
    CHECK(size == nproc && ARMCI_Absolute_id(&world, nproc - 1) == nproc - 1);
    CHECK(ARMCI_Uses_shm_grp(&world) == (armci_domain_count(ARMCI_DOMAIN_SMP) == 1));

    for (int round = 0; round < 3; round++) {
        struct guarded mine = {GUARD, {}, GUARD}, theirs = {GUARD, {}, GUARD};
        int count = halves(1 - me % 2, list);
        if (count > 0 && round != 1) { /* who is not of it need not call */
            ARMCI_Group_create(count, list, &theirs.group);
            check_guards(&theirs);
            CHECK(ARMCI_Group_rank(&theirs.group, &rank) != 0 && rank == -1 && theirs.group.size == 0);
            CHECK(ARMCI_Absolute_id(&theirs.group, 0) == list[0]);
#ifdef WITH_MPI
            CHECK(armci_group_comm(&theirs.group) == MPI_COMM_NULL && theirs.group.comm == MPI_COMM_NULL);
#endif
        }
        count = halves(me % 2, list);
        ARMCI_Group_create(count, list, &mine.group);
        check_guards(&mine);
        CHECK(ARMCI_Group_rank(&mine.group, &rank) == 0 && list[rank] == me && mine.group.rank == rank);
        ARMCI_Group_size(&mine.group, &size);
        CHECK(size == count && mine.group.size == count);
        for (int i = 0; i < size; i++) {
            CHECK(ARMCI_Absolute_id(&mine.group, i) == list[i] && mine.group.grp_to_abs[i] == list[i]);
            CHECK(mine.group.abs_to_grp[list[i]] == i);
        }
        collectives(&mine.group, size, rank, list);
        memory(&mine.group, size, rank);

        /* A copy is the same group. Children are named by ranks of their parent. */
        ARMCI_Group copy = mine.group, child;
        int first[] = {0};
        ARMCI_Group_create_child(1, first, &child, &copy);
        CHECK(ARMCI_Absolute_id(&child, 0) == list[0] && child.rank == (rank == 0 ? 0 : -1));
        ARMCI_Group_free(&child);
        ARMCI_Group_set_default(&mine.group);
        ARMCI_Group_get_default(&other);
        CHECK(other.rank == rank && other.size == size);
        ARMCI_Group_create(1, first, &child);
        CHECK(ARMCI_Absolute_id(&child, 0) == list[0]);
        ARMCI_Group_free(&child);
        ARMCI_Group_create(0, first, &child); /* of nobody */
        CHECK(ARMCI_Group_rank(&child, &rank) != 0 && rank == -1 && child.size == 0);
        CHECK(ARMCI_Group_rank(&mine.group, &rank) == 0);
        ARMCI_Group_free(&child);
        if (round == 2) ARMCI_Group_set_default(&world); /* or it is the default again by itself */
        ARMCI_Group_free(&mine.group);
        check_guards(&mine);
        CHECK(mine.group.rank == -1 && mine.group.size == 0 && mine.group.grp_to_abs == NULL);
        ARMCI_Group_get_default(&other);
        CHECK(other.size == nproc);
        if (count < nproc && round != 1) ARMCI_Group_free(&theirs.group);
        check_guards(&theirs);
    }
    free(list);
    CHECK(ARMCI_Finalize() == 0);
    end_mpi();
    puts("done");
    return 0;
}
