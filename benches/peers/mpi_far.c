/* The peer between nodes that most programs have: an MPI's one-sided operations. Rank 1 reads, writes and counts in rank
 * 0's window, while that waits in the library and while it computes; what is under way then is complete when it calls in
 * again. Prints lines such as {"name":"get_8","median":15000.0,"p99":21000.0}, in nanoseconds per call.
 *
 * usage: mpi_far far SAMPLES MILLISECONDS, by two ranks that share no memory, or are told so
 */
#include <mpi.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "sampling.h"

/* How long the owner computes between two calls: what a task of some size takes. */
static const double PIECE = 0.3;

static int rank;
static char *memory, *local;
static MPI_Win window;

static void get(int bytes) {
    MPI_Get(local, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(0, window);
}
static void put(int bytes) {
    MPI_Put(local, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, window);
    MPI_Win_flush(0, window);
}
static void acc(int bytes) {
    MPI_Accumulate(local, bytes / 8, MPI_DOUBLE, 0, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_flush(0, window);
}
static void add(int bytes) {
    static int64_t one = 1, found;
    (void)bytes;
    MPI_Fetch_and_op(&one, &found, MPI_INT64_T, 0, MIB, MPI_SUM, window);
    MPI_Win_flush(0, window);
}

/* Of each size of sampling.h, the largest known as `NAME_1m`; as many as there is time for. */
static void by_size(const char *what, operation call, int samples, double ns) {
    for (int i = 0; i < HOW_MANY_SIZES; i++) {
        char name[32];
        snprintf(name, sizeof name, SIZES[i] == MIB ? "%s_1m" : "%s_%d", what, SIZES[i]);
        sample_within(name, call, SIZES[i], SIZES[i] > 4096 ? samples / 4 : samples, ns);
    }
}

/* While the owner computes, piece by piece: so many pieces, so one operation or more each. */
static void while_computing(const char *name, operation call, int bytes, int pieces) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int piece = 0; piece < pieces; piece++) {
        if (rank == 0) {
            for (double end = MPI_Wtime() + PIECE; MPI_Wtime() < end;) {}
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        } else {
            /* In the midst of a piece. */
            for (double end = MPI_Wtime() + PIECE / 100; MPI_Wtime() < end;) {}
            double start = now();
            call(bytes);
            taken[piece] = now() - start;
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) report(name, pieces);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4 || size != 2) {
        fprintf(stderr, "usage: mpi_far far SAMPLES MILLISECONDS, by two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int samples = atoi(argv[2]);
    double ns = atof(argv[3]) * 1e6;
    local = calloc(2, MIB);
    if (!local || !room_for_samples()) {
        fprintf(stderr, "mpi_far: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Win_allocate(2 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, 2 * MIB);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        by_size("get", get, samples, ns);
        by_size("put", put, samples, ns);
        sample_within("add", add, 0, samples, ns);
        sample_within("acc_1m", acc, MIB, samples / 4, ns);
    }
    while_computing("add_busy", add, 0, 3);
    while_computing("get_8_busy", get, 8, 3);
    /* No ceremony: what was measured is told, and over TCP the window's end now and then waits for ever. */
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
}
