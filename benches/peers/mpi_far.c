/* The peer between nodes that most programs have: an MPI's one-sided operations. Rank 1 reads, writes and counts in rank
 * 0's window, while that waits in the library and while it computes; what is under way then is complete when it calls in
 * again. Prints lines such as {"name":"get_8","median":15000.0,"p99":21000.0}, in nanoseconds per call.
 *
 * usage: mpi_far far SAMPLES MILLISECONDS, by two ranks that share no memory, or are told so
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, MOST = 100000 };

/* How long the owner computes between two calls: what a task of some size takes. */
static const double PIECE = 0.3;

static int rank;
static char *memory, *local;
static MPI_Win window;
static double taken[MOST];

static void get_8(void) { MPI_Get(local, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, window); }
static void put_8(void) { MPI_Put(local, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, window); }
static void get_1m(void) { MPI_Get(local, MIB, MPI_BYTE, 0, 0, MIB, MPI_BYTE, window); }
static void put_1m(void) { MPI_Put(local, MIB, MPI_BYTE, 0, 0, MIB, MPI_BYTE, window); }
static void acc_1m(void) {
    MPI_Accumulate(local, MIB / 8, MPI_DOUBLE, 0, 0, MIB / 8, MPI_DOUBLE, MPI_SUM, window);
}
static void add(void) {
    static int64_t one = 1, found;
    MPI_Fetch_and_op(&one, &found, MPI_INT64_T, 0, MIB, MPI_SUM, window);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, int count) {
    if (count == 0) return;
    qsort(taken, count, sizeof *taken, ascending);
    printf("{\"name\":\"%s\",\"median\":%.3f,\"p99\":%.3f}\n", name, taken[count / 2] * 1e9, taken[count * 99L / 100] * 1e9);
    fflush(stdout);
}

/* So many, or as many as there is time for. */
static void measure(const char *name, void (*operation)(void), int samples, double seconds) {
    int count = 0;
    double end = MPI_Wtime() + seconds;
    for (int i = -samples / 10 - 2; i < samples && (i < 1 || MPI_Wtime() < end); i++) {
        double start = MPI_Wtime();
        operation();
        MPI_Win_flush(0, window);
        if (i >= 0 && count < MOST) taken[count++] = MPI_Wtime() - start;
    }
    report(name, count);
}

/* While the owner computes, piece by piece: so many pieces, so one operation or more each. */
static void while_computing(const char *name, void (*operation)(void), int pieces) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int piece = 0; piece < pieces; piece++) {
        if (rank == 0) {
            for (double end = MPI_Wtime() + PIECE; MPI_Wtime() < end;) {}
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        } else {
            /* In the midst of a piece. */
            for (double end = MPI_Wtime() + PIECE / 100; MPI_Wtime() < end;) {}
            double start = MPI_Wtime();
            operation();
            MPI_Win_flush(0, window);
            taken[piece] = MPI_Wtime() - start;
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
    double seconds = atof(argv[3]) / 1000;
    local = calloc(2, MIB);
    MPI_Win_allocate(2 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, 2 * MIB);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        measure("get_8", get_8, samples, seconds);
        measure("put_8", put_8, samples, seconds);
        measure("add", add, samples, seconds);
        measure("get_1m", get_1m, samples / 4, seconds);
        measure("put_1m", put_1m, samples / 4, seconds);
        measure("acc_1m", acc_1m, samples / 4, seconds);
    }
    while_computing("add_busy", add, 3);
    while_computing("get_8_busy", get_8, 3);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    free(local);
    return 0;
}
