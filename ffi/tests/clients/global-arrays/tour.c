/* A tour of Global Arrays, as its prebuilt library makes it over ours: each result is known. */
#include <ga-mpi.h>
#include <ga.h>
#include <macdecls.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 60 };
static int me, nproc;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", me, __FILE__, __LINE__, #condition); \
            GA_Error("a check failed", 99);                                                     \
        }                                                                                       \
    } while (0)

static int dims[] = {N, N}, lo[] = {0, 0}, hi[] = {N - 1, N - 1}, ld[] = {N};

static int array(char *name) {
    int g = NGA_Create(C_DBL, 2, dims, name, NULL);
    CHECK(g != 0);
    GA_Zero(g);
    return g;
}

static double element(int i, int j) { return 1 + i + 3 * j; }

static void patches(void) {
    char name[] = "a";
    int a = array(name), inner_lo[] = {3, 5}, inner_hi[] = {40, 50};
    double(*all)[N] = malloc(sizeof(double[N][N])), two = 2;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) all[i][j] = element(i, j);
    if (me == 0) NGA_Put(a, lo, hi, all, ld);
    GA_Sync();
    NGA_Acc(a, inner_lo, inner_hi, &all[3][5], ld, &two); /* by all ranks */
    GA_Sync();
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) all[i][j] = -1;
    ga_nbhdl_t handle;
    NGA_NbGet(a, lo, hi, all, ld, &handle);
    NGA_NbWait(&handle);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int inside = i >= 3 && i <= 40 && j >= 5 && j <= 50;
            CHECK(all[i][j] == element(i, j) * (inside ? 1 + 2 * nproc : 1));
        }
    GA_Sync();

    /* Scattered elements. */
    int at[4][2] = {{0, 0}, {59, 59}, {7, 30}, {30, 7}}, *subscripts[] = {at[0], at[1], at[2], at[3]};
    double values[4];
    NGA_Gather(a, values, subscripts, 4);
    CHECK(values[0] == element(0, 0) && values[2] == element(7, 30) * (1 + 2 * nproc));
    GA_Sync();
    GA_Destroy(a);
    free(all);
}

static void algebra(void) {
    char na[] = "a", nb[] = "b", nc[] = "c";
    int a = array(na), b = array(nb), c = array(nc);
    double one = 1, zero = 0, half = 0.5;
    GA_Fill(a, &half);
    GA_Fill(b, &one);
    GA_Dgemm('n', 't', N, N, N, one, a, b, zero, c);
    double corner = 0;
    int last[] = {N - 1, N - 1};
    NGA_Get(c, last, last, &corner, ld);
    CHECK(corner == 0.5 * N);
    CHECK(fabs(GA_Ddot(c, b) - 0.5 * N * N * N) < 1e-9);
    GA_Add(&one, a, &half, b, c);
    GA_Transpose(c, a);
    GA_Symmetrize(a);
    CHECK(fabs(GA_Ddot(a, b) - N * N) < 1e-9);
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(c);
}

static void counters_and_mutexes(void) {
    enum { DRAWS = 200 };
    int one = 1, zero = 0;
    char name[] = "n";
    int n = NGA_Create(C_LONG, 1, &one, name, NULL);
    GA_Zero(n);
    long sum = 0, draws = (long)DRAWS * nproc;
    char plus[] = "+";
    for (int i = 0; i < DRAWS; i++) sum += NGA_Read_inc(n, &zero, 1);
    GA_Lgop(&sum, 1, plus);
    CHECK(sum == draws * (draws - 1) / 2);
    CHECK(GA_Create_mutexes(3) == 1);
    for (int i = 0; i < 20; i++) {
        long held;
        GA_Lock(2);
        NGA_Get(n, &zero, &zero, &held, &one);
        held++;
        NGA_Put(n, &zero, &zero, &held, &one);
        GA_Unlock(2);
    }
    GA_Sync();
    long held;
    NGA_Get(n, &zero, &zero, &held, &one);
    CHECK(held == draws + 20 * nproc);
    GA_Sync();
    CHECK(GA_Destroy_mutexes() == 1);
    GA_Destroy(n);
}

static void groups(void) {
    int *list = malloc(sizeof(int) * nproc), count = 0, ranks;
    for (int r = me % 2; r < nproc; r += 2) list[count++] = r;
    for (int round = 0; round < 3; round++) {
        int group = GA_Pgroup_create(list, count), world = GA_Pgroup_get_default(), rank;
        GA_Pgroup_set_default(group);
        CHECK(GA_Nnodes() == count && list[GA_Nodeid()] == me);
        MPI_Comm comm = GA_MPI_Comm_pgroup(group);
        MPI_Comm_size(comm, &ranks);
        MPI_Comm_rank(comm, &rank);
        CHECK(ranks == count && rank == GA_Nodeid());
        char name[] = "g", max[] = "max";
        double seven = 7, most = me;
        int g = NGA_Create(C_DBL, 2, dims, name, NULL);
        GA_Fill(g, &seven);
        CHECK(GA_Ddot(g, g) == 49.0 * N * N);
        GA_Dgop(&most, 1, max);
        CHECK(most == list[count - 1]);
        GA_Destroy(g);
        GA_Sync();
        GA_Pgroup_set_default(world);
        GA_Pgroup_destroy(group);
    }
    MPI_Comm comm = GA_MPI_Comm();
    MPI_Comm_size(comm, &ranks);
    CHECK(ranks == nproc);
    free(list);
    GA_Sync();
}

static void ghosts(void) {
    int width[] = {1, 2}, chunk[] = {-1, -1};
    char name[] = "h";
    int g = NGA_Create_ghosts(C_DBL, 2, dims, width, name, chunk);
    double five = 5;
    GA_Fill(g, &five);
    GA_Update_ghosts(g);
    int wide[2], ldw[1];
    double *part;
    NGA_Access_ghosts(g, wide, &part, ldw);
    for (int i = 0; i < wide[0]; i++)
        for (int j = 0; j < wide[1]; j++) CHECK(part[i * ldw[0] + j] == 5);
    GA_Sync();
    GA_Destroy(g);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    GA_Initialize();
    CHECK(MA_init(C_DBL, 100000, 100000));
    me = GA_Nodeid();
    nproc = GA_Nnodes();
    patches();
    algebra();
    counters_and_mutexes();
    groups();
    ghosts();
    const char *wanted = getenv("ARMCI_NODES");
    int nodes = wanted ? atoi(wanted) : 1, on_nodes = 0;
    for (int node = 0; node < nodes; node++) on_nodes += GA_Cluster_nprocs(node);
    CHECK(GA_Cluster_nnodes() == nodes && on_nodes == nproc && GA_Cluster_procid(nodes - 1, 0) == (nodes - 1) * nproc / nodes);
    GA_Terminate();
    MPI_Finalize();
    if (me == 0) puts("done");
    return 0;
}
