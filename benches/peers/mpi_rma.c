/* MPI's own one-sided operations, passive target, on whichever MPI it is compiled with: rank 1 works on what rank 0 has
 * allocated with its window, while rank 0 waits in a barrier, or computes. Prints lines such as
 * {"name":"put_8","median":4.1,"p99":4.4}, in nanoseconds per call. Each operation is completed there (flush).
 *
 * usage: mpi_rma rma SAMPLES WINDOW_MS
 */
#include <mpi.h>
#include <string.h>

#include "sampling.h"

static int rank, samples;
static double window_ns;
static char *mine;
static MPI_Win win;

static void put(int bytes) {
    MPI_Put(mine, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, win);
    MPI_Win_flush(0, win);
}
static void get(int bytes) {
    MPI_Get(mine, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, win);
    MPI_Win_flush(0, win);
}
static void add(int bytes) {
    MPI_Accumulate(mine, bytes / 8, MPI_DOUBLE, 0, 0, bytes / 8, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(0, win);
}
static void draw(int bytes) {
    long one = 1, found;
    (void)bytes;
    MPI_Fetch_and_op(&one, &found, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

/* Rank 0 computes and calls nobody; rank 1 draws, at least once, however long that takes. */
static void owner_computing(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now();
    if (rank == 0) {
        volatile double x = 1.0;
        while (now() - begin < window_ns) x = x * 0.999999 + 1e-6;
    } else {
        int count = 0;
        while (count < MOST_SAMPLES && (count == 0 || now() - begin < window_ns * 0.9)) {
            double start = now();
            draw(0);
            taken[count++] = now() - start;
        }
        report("add_busy", count);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4 || strcmp(argv[1], "rma") != 0) {
        fprintf(stderr, "usage: %s rma SAMPLES WINDOW_MS\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    samples = atoi(argv[2]);
    window_ns = atof(argv[3]) * 1e6;
    mine = aligned_alloc(4096, MIB);
    char *theirs;
    if (samples < 1 || samples * 10 > MOST_SAMPLES || !room_for_samples() || !mine ||
        MPI_Win_allocate(MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &win) != MPI_SUCCESS) {
        fprintf(stderr, "%s: no memory, or more than %d samples\n", argv[0], MOST_SAMPLES / 10);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(mine, 0, MIB);
    memset(theirs, 0, MIB);
    MPI_Win_lock_all(0, win);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        for (int i = 0; i < HOW_MANY_SIZES; i++) {
            of_size("put", put, SIZES[i], samples / 4 + 5);
            of_size("get", get, SIZES[i], samples / 4 + 5);
        }
        sample("acc_1m", add, MIB, samples / 20 + 5, 1, 1);
        sample("add_idle", draw, 0, samples, 100, 1);
    }
    owner_computing();
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
