/* What the clients have in common: rank 0 prints what came of each step, a line each, for two libraries to be compared.
   Numbers are printed with all their digits; who compares allows for another order of a sum. */
#include <ga-mpi.h>
#include <ga.h>
#include <macdecls.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, nproc;

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", me, __FILE__, __LINE__, #condition); \
            GA_Error("a check failed", 99);                                                      \
        }                                                                                        \
    } while (0)

/* A line of rank 0's. */
static void show(const char *what, int count, const double *numbers) {
    if (me != 0) return;
    printf("%s:", what);
    for (int i = 0; i < count; i++) printf(" %.17g", numbers[i]);
    printf("\n");
    fflush(stdout);
}
static void show1(const char *what, double number) { show(what, 1, &number); }

static size_t size_of(int type) {
    switch (type) {
    case C_INT: return sizeof(int);
    case C_LONG: return sizeof(long);
    case C_LONGLONG: return sizeof(long long);
    case C_FLOAT: return sizeof(float);
    case C_DBL: return sizeof(double);
    case C_SCPL: return sizeof(SingleComplex);
    case C_DCPL: return sizeof(DoubleComplex);
    }
    GA_Error("what type is that?", type);
    return 0;
}

/* Element k of a buffer; a complex one has an imaginary part of its own. */
static void set(int type, void *buffer, long k, double x) {
    switch (type) {
    case C_INT: ((int *)buffer)[k] = (int)x; break;
    case C_LONG: ((long *)buffer)[k] = (long)x; break;
    case C_LONGLONG: ((long long *)buffer)[k] = (long long)x; break;
    case C_FLOAT: ((float *)buffer)[k] = (float)x; break;
    case C_DBL: ((double *)buffer)[k] = x; break;
    case C_SCPL: ((SingleComplex *)buffer)[k] = (SingleComplex){(float)x, (float)(x + 1)}; break;
    case C_DCPL: ((DoubleComplex *)buffer)[k] = (DoubleComplex){x, x + 1}; break;
    }
}
static double get(int type, const void *buffer, long k) {
    switch (type) {
    case C_INT: return ((const int *)buffer)[k];
    case C_LONG: return (double)((const long *)buffer)[k];
    case C_LONGLONG: return (double)((const long long *)buffer)[k];
    case C_FLOAT: return ((const float *)buffer)[k];
    case C_DBL: return ((const double *)buffer)[k];
    case C_SCPL: return ((const SingleComplex *)buffer)[k].real + 1e3 * ((const SingleComplex *)buffer)[k].imag;
    case C_DCPL: return ((const DoubleComplex *)buffer)[k].real + 1e3 * ((const DoubleComplex *)buffer)[k].imag;
    }
    return 0;
}

/* Two sums over elements, of which one tells their places, and three of the elements. */
static void show_buffer(const char *what, int type, const void *buffer, long count) {
    double numbers[5] = {0};
    if (count == 0) return;
    for (long k = 0; k < count; k++) {
        numbers[0] += get(type, buffer, k);
        numbers[1] += get(type, buffer, k) * (1 + k * 7 % 101);
    }
    numbers[2] = get(type, buffer, 0);
    numbers[3] = get(type, buffer, count / 3);
    numbers[4] = get(type, buffer, count - 1);
    show(what, 5, numbers);
}

/* The whole of an array, of whatever shape and type. All ranks call it. */
__attribute__((unused)) static void show_array(const char *what, int g) {
    int type, ndim, dims[GA_MAX_DIM], lo[GA_MAX_DIM], hi[GA_MAX_DIM], ld[GA_MAX_DIM];
    long count = 1;
    GA_Sync();
    if (me == 0) {
        NGA_Inquire(g, &type, &ndim, dims);
        for (int d = 0; d < ndim; d++) count *= dims[d], lo[d] = 0, hi[d] = dims[d] - 1;
        for (int d = 1; d < ndim; d++) ld[d - 1] = dims[d];
        void *buffer = calloc(count, size_of(type));
        NGA_Get(g, lo, hi, buffer, ld);
        show_buffer(what, type, buffer, count);
        free(buffer);
    }
    GA_Sync();
}

/* Puts x(k) = scale * (1 + (k * 37 mod 41)) into the whole of an array: its rows, by turns of the ranks. */
__attribute__((unused)) static void fill_array(int g, double scale) {
    int type, ndim, dims[GA_MAX_DIM], lo[GA_MAX_DIM], hi[GA_MAX_DIM], ld[GA_MAX_DIM];
    long row = 1;
    NGA_Inquire(g, &type, &ndim, dims);
    for (int d = 1; d < ndim; d++) row *= dims[d], lo[d] = 0, hi[d] = dims[d] - 1, ld[d - 1] = dims[d];
    if (ndim == 1) ld[0] = 1;
    void *buffer = calloc(row, size_of(type));
    for (int i = me; i < dims[0]; i += nproc) {
        for (long k = 0; k < row; k++) set(type, buffer, k, scale * (1 + (i * row + k) * 37 % 41));
        lo[0] = hi[0] = i;
        NGA_Put(g, lo, hi, buffer, ld);
    }
    free(buffer);
    GA_Sync();
}

static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    GA_Initialize();
    CHECK(MA_init(C_DBL, 4000000, 4000000));
    me = GA_Nodeid();
    nproc = GA_Nnodes();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(rank == me);
}

static void end(void) {
    GA_Sync();
    show1("done", nproc);
    GA_Terminate();
    MPI_Finalize();
}
