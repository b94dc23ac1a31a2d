/* A program that uses ARMCI, and perhaps MPI: beside_mpi FIRST LAST HOW
   FIRST initialises first, and LAST finalises last: mpi or armci (without MPI, both say armci). If FIRST is comm, it is MPI,
   and its ranks join by a communicator.
   HOW: work; child: the same, and start a program; counted: the same, joined once more than left; stay; or how the highest rank leaves before its time. */
#include "check.h"

#include <signal.h>
#include <unistd.h>

static int is(const char *word, const char *other) { return strcmp(word, other) == 0; }

/* Joins by a duplicate of MPI's world, which then stands for all ranks. */
static int join_by_communicator(void) {
#ifdef WITH_MPI
    MPI_Comm comm;
    ARMCI_Group world;
    start_mpi();
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    if (ARMCI_Init_mpi_comm(comm) != 0) return 1;
    ARMCI_Group_get_world(&world);
    CHECK(armci_group_comm(&world) == comm);
    return 0;
#else
    return 1;
#endif
}

/* Both see the same ranks, and both can speak. */
static void agree(int me, int nproc) {
#ifdef WITH_MPI
    int rank, size, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(rank == me && size == nproc);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == nproc * (nproc - 1) / 2);
#else
    CHECK(me >= 0 && me < nproc);
#endif
}

static void work(int me, int nproc) {
    int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
    enum { N = 1000 };
    void **base = allocate((N + 1) * sizeof(double));
    double *mine = (double *)base[me], *there = (double *)base[right], here[N], two = 2;
    long *counter = (long *)((double *)base[0] + N), ticket;

    for (int i = 0; i < N; i++) here[i] = me * N + i, mine[i] = -1;
    if (me == 0) *counter = 0;
    ARMCI_Barrier();
    CHECK(ARMCI_Put(here, there, sizeof here, right) == 0);
    ARMCI_Barrier();
    for (int i = 0; i < N; i++) CHECK(mine[i] == left * N + i);
    agree(me, nproc);
    ARMCI_Barrier();
    CHECK(ARMCI_Acc(ARMCI_ACC_DBL, &two, here, base[0], sizeof here, 0) == 0);
    ARMCI_Barrier();
    CHECK(ARMCI_Get(base[0], here, sizeof here, 0) == 0);
    for (int i = 0; i < N; i++) {
        double sum = (nproc - 1) * N + i; /* what rank 0 got from its left */
        for (int rank = 0; rank < nproc; rank++) sum += two * (rank * N + i);
        CHECK(here[i] == sum);
    }
    for (int i = 0; i < 100; i++) CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &ticket, counter, 1, 0) == 0);
    ARMCI_Barrier();
    CHECK(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &ticket, counter, 0, 0) == 0);
    CHECK(ticket == 100L * nproc);
    agree(me, nproc);
    release(base);
}

/* The highest rank leaves like this; the others wait for it. */
static void leave(const char *how) {
    if (is(how, "killed")) raise(SIGKILL);
    if (is(how, "error")) ARMCI_Error("I give up", 37);
    if (is(how, "silent")) _exit(0);
    if (is(how, "early")) exit(0);
    fprintf(stderr, "what is %s?\n", how);
    exit(98);
}

int main(int argc, char **argv) {
    if (argc != 4) return 97;
    const char *first = argv[1], *last = argv[2], *how = argv[3];
    if (is(first, "mpi")) start_mpi();
    if ((is(first, "comm") ? join_by_communicator() : ARMCI_Init()) != 0) return 96;
    if (is(first, "armci")) start_mpi();
    if (is(how, "counted") && ARMCI_Init() != 0) return 93;
    int me = armci_msg_me(), nproc = armci_msg_nproc();
    agree(me, nproc);
    work(me, nproc);
    if (is(how, "stay")) {
        printf("working\n");
        fflush(stdout);
        for (;;) pause();
    }
    if (is(how, "child")) {
        char command[4096];
        CHECK(snprintf(command, sizeof command, "%s armci armci work", argv[0]) < (int)sizeof command);
        CHECK(system(command) == 0);
    } else if (!is(how, "work") && !is(how, "counted")) {
        if (me == nproc - 1) leave(how);
        ARMCI_Barrier();
        fprintf(stderr, "rank %d passed a barrier that the highest rank never entered\n", me);
        return 95;
    }
    if (is(last, "armci")) end_mpi();
    if (ARMCI_Finalize() != 0) return 94;
    if (is(last, "mpi")) end_mpi();
    if (is(how, "counted")) {
        CHECK(ARMCI_Initialized());
        if (me == nproc - 1) usleep(300000); /* the others are gone by then */
    }
    printf("rank %d of %d done\n", me, nproc);
    return 0;
}
