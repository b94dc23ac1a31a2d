/* The measurements of arrays.rs through the C interface of Global Arrays, on whichever ARMCI it is linked with.
 * Prints the same lines: {"name":"array_put_8","median":4.1,"p99":4.4}, in nanoseconds per call. Rank 1 works on what
 * rank 0 owns, or, with four ranks, on what all own.
 *
 * usage: global_arrays (pair|asleep|own|spread) SAMPLES WINDOW_MS
 *
 * "asleep": while the owner sleeps, and so leaves its core to whoever serves for it. "own": linked with nothing.c, what
 * Global Arrays itself takes.
 */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <string.h>

#include "sampling.h"

enum { LENGTH = 1024, SIDE = 256, SMALL = 100 };

static int rank, samples;
static int array, counters;          /* handles */
static double buffer[SIDE * SIDE];
static int lo[2], hi[2], ld[1] = {SIDE}; /* the patch of the measurement under way; ends included */

static void patch(int row, int column, int rows, int columns) {
    lo[0] = row, lo[1] = column;
    hi[0] = row + rows - 1, hi[1] = column + columns - 1;
}

static void put(int bytes) { (void)bytes, NGA_Put(array, lo, hi, buffer, ld); }
static void get(int bytes) { (void)bytes, NGA_Get(array, lo, hi, buffer, ld); }
static void draw(int bytes) {
    int index[2] = {3, 7};
    (void)bytes;
    NGA_Read_inc(counters, index, 1);
}
static void create(int bytes) {
    int shape[2] = {SMALL, SMALL};
    (void)bytes;
    GA_Destroy(NGA_Create(C_DBL, 2, shape, "short-lived", NULL));
}
static void create_zeroed(int bytes) {
    int shape[2] = {SMALL, SMALL}, handle = NGA_Create(C_DBL, 2, shape, "short-lived", NULL);
    (void)bytes;
    GA_Zero(handle);
    GA_Destroy(handle);
}

static void small(void) {
    patch(11, 40, 1, 1);
    sample("array_put_8", put, 0, samples, 100, 1);
    sample("array_get_8", get, 0, samples, 100, 1);
    patch(11, 40, 1, 2);
    sample("array_put_16", put, 0, samples, 100, 1);
    sample("array_get_16", get, 0, samples, 100, 1);
    sample("array_add", draw, 0, samples, 100, 1);
}

static void own(void) {
    if (rank == 1) small();
#ifdef ON_NOTHING
    extern long armci_nothing_calls;
    if (rank == 1 && armci_nothing_calls == 0) GA_Error("Global Arrays does not call what nothing.c has", 1);
#endif
    GA_Sync();
}

/* The owner looks once a millisecond whether rank 1 has written that it is done. */
static void asleep(void) {
    int at[2] = {0, 0}, row[1] = {1};
    long done = 1;
    if (rank == 1) {
        small();
        NGA_Put(counters, at, at, &done, row);
    } else {
        long *flag;
        struct timespec pause = {0, 1000000};
        NGA_Access(counters, at, at, &flag, row);
        while (*(volatile long *)flag == 0) nanosleep(&pause, NULL);
        NGA_Release(counters, at, at);
    }
    GA_Sync();
}

static void pair(void) {
    if (rank == 1) {
        small();
        patch(50, 70, SIDE, SIDE);
        sample("array_patch", get, 0, samples / 2, 4, 1);
    }
    GA_Sync();
    sample("array_create_unfilled", create, 0, samples / 4, 4, rank == 0);
    sample("array_create", create_zeroed, 0, samples / 4, 4, rank == 0);
}

static void spread(void) {
    if (rank == 1) {
        patch(LENGTH / 2 - SIDE / 2, LENGTH / 2 - SIDE / 2, SIDE, SIDE);
        sample("array_spread", get, 0, samples / 2, 4, 1);
    }
    GA_Sync();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        fprintf(stderr, "usage: %s (pair|asleep|own|spread) SAMPLES WINDOW_MS\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    GA_Initialize();
    MA_init(C_DBL, 1 << 20, 1 << 20);
    rank = GA_Nodeid();
    samples = atoi(argv[2]);
    int large[2] = {LENGTH, LENGTH}, small[2] = {SMALL, SMALL};
    double one = 1.0;
    array = NGA_Create(C_DBL, 2, large, "patches", NULL);
    counters = NGA_Create(C_LONG, 2, small, "counters", NULL);
    if (!room_for_samples() || !array || !counters) {
        fprintf(stderr, "no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    GA_Fill(array, &one);
    GA_Zero(counters);
    GA_Sync();

    if (strcmp(argv[1], "spread") == 0) spread();
    else if (strcmp(argv[1], "asleep") == 0) asleep();
    else if (strcmp(argv[1], "own") == 0) own();
    else pair();

    GA_Destroy(counters);
    GA_Destroy(array);
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
