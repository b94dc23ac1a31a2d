/* Joining with a communicator: one that has all ranks in their order stands for them, any other is refused on all of its
   ranks, each with a line that the test counts, and they may call again. */
#include "check.h"

#include <pthread.h>

static int me, nproc, refusals;
static void **base;

#define REFUSED(call)           \
    do {                        \
        CHECK((call) != 0);     \
        refusals++;             \
    } while (0)

/* The library is found to have these values at run time. */
static void constants(void) {
    CHECK(MPI_IDENT == 0);
    CHECK(MPI_THREAD_SINGLE == 0 && MPI_THREAD_FUNNELED == 1 && MPI_THREAD_SERIALIZED == 2 && MPI_THREAD_MULTIPLE == 3);
}

/* The ranks of a colour, by ascending keys. */
static MPI_Comm split(int colour, int key) {
    MPI_Comm comm;
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm) == MPI_SUCCESS);
    return comm;
}

static void refused(int level, MPI_Comm comm) {
    REFUSED(ARMCI_Init_thread_comm(level, comm));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Communicators of other ranks, or in another order. In some of them the calling rank has its own number. */
static void others(void) {
    MPI_Comm reversed = split(0, -me), swapped = split(0, me < 2 ? -me : me), turned = split(0, (me + 1) % nproc);
    MPI_Comm but_last = split(me == nproc - 1 ? MPI_UNDEFINED : 0, me);
    refused(0, MPI_COMM_NULL);
    if (nproc > 1) {
        refused(0, reversed);
        refused(3, swapped);
        refused(0, turned);
        refused(2, but_last); /* none at all, on the last */
        refused(0, MPI_COMM_SELF);
    }
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&swapped);
    MPI_Comm_free(&turned);
    if (me != nproc - 1) MPI_Comm_free(&but_last);
}

static void same_ranks(MPI_Comm comm, MPI_Comm other, int wanted) {
    int found;
    CHECK(MPI_Comm_compare(comm, other, &found) == MPI_SUCCESS);
    CHECK(found == wanted);
}

static void *from_another_thread(void *unused) {
    CHECK(ARMCI_PutValueInt(100 + me, (char *)base[(me + 1) % nproc] + 4, (me + 1) % nproc) == 0);
    ARMCI_AllFence();
    return unused;
}

/* Every rank does its part, under the numbers of the communicator. */
static void work(MPI_Comm comm) {
    int rank, size, left = (me + nproc - 1) % nproc, right = (me + 1) % nproc, sum = me;
    pthread_t thread;
    CHECK(MPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == me);
    CHECK(MPI_Comm_size(comm, &size) == MPI_SUCCESS && size == nproc);
    base = allocate(8);
    CHECK(ARMCI_PutValueInt(me, base[right], right) == 0);
    CHECK(pthread_create(&thread, NULL, from_another_thread, NULL) == 0); /* as was asked for */
    CHECK(pthread_join(thread, NULL) == 0);
    ARMCI_Barrier();
    CHECK(((int *)base[me])[0] == left && ((int *)base[me])[1] == 100 + left);
    armci_msg_igop(&sum, 1, (char *)"+");
    CHECK(sum == nproc * (nproc - 1) / 2);
    release(base);
}

/* The ranks from the highest down: what no communicator may bring, a group may. It lies in memory of its exact size, so that
   a checker of memory sees a byte written past it. */
static void reversed_group(void) {
    int *list = (int *)malloc((size_t)nproc * sizeof *list), rank, sum;
    ARMCI_Group *group = (ARMCI_Group *)malloc(sizeof *group);
    for (int i = 0; i < nproc; i++) list[i] = nproc - 1 - i;
    ARMCI_Group_create(nproc, list, group);
    CHECK(MPI_Comm_rank(armci_group_comm(group), &rank) == MPI_SUCCESS && rank == nproc - 1 - me && group->rank == rank);
    CHECK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, group->comm) == MPI_SUCCESS && sum == nproc * (nproc - 1) / 2);
    same_ranks(group->comm, MPI_COMM_WORLD, nproc > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
    ARMCI_Group_free(group);
    CHECK(group->comm == MPI_COMM_NULL);
    free(group);
    free(list);
}

int main(void) {
    MPI_Comm twin, again;
    ARMCI_Group world;
    start_mpi();
    constants();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &nproc);
    others();
    if (ARMCI_Initialized()) return 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    again = split(5, me); /* in order, too */
    REFUSED(ARMCI_Init_thread_comm(4, twin)); /* no level */
    if (ARMCI_Init_thread_comm(3, twin) != 0) return 2;
    CHECK(armci_msg_me() == me && armci_msg_nproc() == nproc);
    ARMCI_Group_get_world(&world);
    CHECK(world.comm == twin && armci_group_comm(&world) == twin); /* which is not MPI_COMM_WORLD */
    same_ranks(world.comm, MPI_COMM_WORLD, MPI_CONGRUENT);
    work(world.comm);
    reversed_group();

    /* Who has joined is counted, with what would have done for joining. */
    CHECK(ARMCI_Init_thread_comm(3, again) == 0);
    others();
    ARMCI_Group_get_world(&world);
    CHECK(world.comm == twin);
    CHECK(ARMCI_Finalize() == 0);
    CHECK(ARMCI_Initialized());
    work(twin);
    CHECK(ARMCI_Finalize() == 0);
    CHECK(!ARMCI_Initialized());
    MPI_Comm_free(&again);
    MPI_Comm_free(&twin);
    end_mpi();
    printf("%d refusals\n", refusals);
    return 0;
}
