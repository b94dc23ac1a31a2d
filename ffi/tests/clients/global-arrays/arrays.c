/* Arrays of all kinds that Global Arrays creates, and each way of moving elements on each of them. */
#include "show.h"

enum { ROWS = 60, COLUMNS = 47 };
static int shape[] = {ROWS, COLUMNS};
static char line[200];

static char *about(const char *kind, const char *what) {
    snprintf(line, sizeof line, "%s, %s", kind, what);
    return line;
}

/* A grid of ranks: 1, 2 or 4 of them. */
static void grid_of(int grid[2]) {
    grid[0] = nproc >= 2 ? 2 : 1;
    grid[1] = nproc / grid[0];
    CHECK(grid[0] * grid[1] == nproc);
}

static void patch(int lo[2], int hi[2], int i, int j, int rows, int columns) {
    lo[0] = i, lo[1] = j;
    hi[0] = i + rows - 1, hi[1] = j + columns - 1;
}

/* Puts, gets and accumulates of patches, blocking and not. */
static void patches(const char *kind, int g) {
    int lo[2], hi[2], ld[] = {COLUMNS};
    double *buffer = malloc(sizeof(double) * ROWS * COLUMNS), two = 2, half = 0.5;
    for (int k = 0; k < ROWS * COLUMNS; k++) buffer[k] = 1 + (k * 13 + me) % 29;

    patch(lo, hi, 7, 5, 40, 30);
    NGA_Acc(g, lo, hi, buffer, ld, &two); /* by all */
    show_array(about(kind, "accumulated"), g);

    ga_nbhdl_t handles[4];
    for (int n = 0; n < 4; n++) {
        patch(lo, hi, 12 * n + 3 * me, 9 * n, 3, 8);
        NGA_NbPut(g, lo, hi, buffer + 100 * n, ld, &handles[n]);
    }
    for (int n = 3; n >= 0; n--) NGA_NbWait(&handles[n]);
    show_array(about(kind, "put without blocking"), g);
    for (int n = 0; n < 4; n++) {
        patch(lo, hi, 10 + n, 10, 20, 11);
        NGA_NbAcc(g, lo, hi, buffer + n, ld, &half, &handles[n]);
    }
    for (int n = 0; n < 4; n++) NGA_NbWait(&handles[n]);
    show_array(about(kind, "accumulated without blocking"), g);
    memset(buffer, 0, sizeof(double) * ROWS * COLUMNS);
    for (int n = 0; n < 2; n++) {
        patch(lo, hi, 30 * n, 1, 30, 46);
        NGA_NbGet(g, lo, hi, buffer + 30 * COLUMNS * n, ld, &handles[n]);
    }
    NGA_NbWait(&handles[0]);
    while (!NGA_NbTest(&handles[1])) {} /* done: its handle is not to be waited for */
    show_buffer(about(kind, "got without blocking"), C_DBL, buffer, ROWS * COLUMNS);
    free(buffer);
    GA_Sync();
}

/* Every second row and third column. */
static void strided(const char *kind, int g) {
    int lo[2], hi[2], skip[] = {2, 3}, ld[] = {16};
    double buffer[30][16], alpha = 3;
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 16; j++) buffer[i][j] = 100 + 16 * i + j;
    patch(lo, hi, 1, 0, 59, 46);
    if (me == nproc - 1) NGA_Strided_put(g, lo, hi, skip, buffer, ld);
    show_array(about(kind, "put with strides"), g);
    NGA_Strided_acc(g, lo, hi, skip, buffer, ld, &alpha);
    show_array(about(kind, "accumulated with strides"), g);
    memset(buffer, 0, sizeof buffer);
    patch(lo, hi, 0, 1, 60, 46);
    NGA_Strided_get(g, lo, hi, skip, buffer, ld);
    show_buffer(about(kind, "got with strides"), C_DBL, buffer, 30 * 16);
    GA_Sync();
}

/* Single elements at places all over. */
static void scattered(const char *kind, int g) {
    enum { N = 70 };
    int at[N][2], *pointers[N];
    double values[N], alpha = 2;
    for (int k = 0; k < N; k++) {
        int place = (k * nproc + me) * 9 % (ROWS * COLUMNS); /* each of one rank's: 9 and the size have 3 in common */
        at[k][0] = place / COLUMNS, at[k][1] = place % COLUMNS, pointers[k] = at[k], values[k] = place + 0.5;
    }
    NGA_Scatter(g, values, pointers, N);
    show_array(about(kind, "scattered"), g);
    NGA_Scatter_acc(g, values, pointers, N, &alpha);
    GA_Sync();
    NGA_Scatter_acc_flat(g, values, at[0], N, &alpha);
    show_array(about(kind, "scattered and added"), g);
    NGA_Gather(g, values, pointers, N);
    show_buffer(about(kind, "gathered"), C_DBL, values, N);
    NGA_Gather_flat(g, values, at[0], N / 2);
    show_buffer(about(kind, "gathered flat"), C_DBL, values, N);
    GA_Sync();
    for (int k = 0; k < N; k++) values[k] = -k;
    NGA_Scatter_flat(g, values, at[0], N);
    show_array(about(kind, "scattered flat"), g);
}

/* Patches that go round the edges. */
static void periodic(const char *kind, int g) {
    int lo[] = {-5, 30}, hi[] = {12, 60}, ld[] = {31};
    double buffer[18][31], alpha = 0.25;
    for (int i = 0; i < 18; i++)
        for (int j = 0; j < 31; j++) buffer[i][j] = i - 2 * j;
    if (me == 0) NGA_Periodic_put(g, lo, hi, buffer, ld);
    show_array(about(kind, "put around the edge"), g);
    NGA_Periodic_acc(g, lo, hi, buffer, ld, &alpha);
    show_array(about(kind, "accumulated around the edge"), g);
    NGA_Periodic_get(g, lo, hi, buffer, ld);
    show_buffer(about(kind, "got around the edge"), C_DBL, buffer, 18 * 31);
    GA_Sync();
}

/* Who has what. */
static void places(const char *kind, int g) {
    double numbers[4 * 16];
    int lo[2], hi[2], map[4 * 64], owners[64];
    for (int rank = 0; rank < nproc; rank++) {
        NGA_Distribution(g, rank, lo, hi);
        numbers[4 * rank] = lo[0], numbers[4 * rank + 1] = lo[1], numbers[4 * rank + 2] = hi[0], numbers[4 * rank + 3] = hi[1];
    }
    show(about(kind, "distribution"), 4 * nproc, numbers);
    for (int k = 0; k < 16; k++) {
        int at[] = {k * 47 % ROWS, k * 31 % COLUMNS};
        numbers[k] = NGA_Locate(g, at);
    }
    show(about(kind, "owners of elements"), 16, numbers);
    if (GA_Total_blocks(g) < 0) {
        patch(lo, hi, 20, 20, 25, 20);
        int count = NGA_Locate_region(g, lo, hi, map, owners);
        for (int n = 0; n < count; n++) numbers[n] = owners[n] * 1000 + map[4 * n];
        show(about(kind, "owners of a patch"), count, numbers);
        NGA_Distribution(g, me, lo, hi);
        if (lo[0] >= 0 && hi[0] >= lo[0]) {
            double *mine;
            int ld[1];
            NGA_Access(g, lo, hi, &mine, ld);
            for (int i = 0; i <= hi[0] - lo[0]; i++)
                for (int j = 0; j <= hi[1] - lo[1]; j++) mine[i * ld[0] + j] += 1000 * me + i;
            NGA_Release_update(g, lo, hi);
        }
        show_array(about(kind, "changed in place"), g);
    } else {
        show1(about(kind, "blocks"), GA_Total_blocks(g));
        double *mine;
        int count;
        NGA_Access_block_segment(g, me, &mine, &count);
        for (int k = 0; k < count; k++) mine[k] += 1000 * me;
        NGA_Release_update_block_segment(g, me);
        show_array(about(kind, "changed in place"), g);
    }
}

static void all(const char *kind, int g) {
    CHECK(g != 0);
    fill_array(g, 1);
    show_array(about(kind, "filled"), g);
    places(kind, g);
    patches(kind, g);
    /* With strides, Global Arrays reckons addresses outside of arrays of blocks. */
    if (GA_Total_blocks(g) < 0) strided(kind, g);
    scattered(kind, g);
    periodic(kind, g);
    /* It does not duplicate tiles. */
    if (strncmp(kind, "tiled", 5) != 0) {
        char name[] = "twin";
        int twin = GA_Duplicate(g, name);
        GA_Copy(g, twin);
        show1(about(kind, "twin"), GA_Ddot(g, twin) - GA_Ddot(g, g));
        show1(about(kind, "like its twin"), GA_Compare_distr(g, twin));
        GA_Destroy(twin);
    }
    GA_Destroy(g);
}

static int by_handle(void) {
    int g = GA_Create_handle();
    char name[] = "by handle";
    GA_Set_data(g, 2, shape, C_DBL);
    GA_Set_array_name(g, name);
    return g;
}

static int allocated(int g) {
    CHECK(GA_Allocate(g));
    return g;
}

/* Arrays of two dimensions, of each distribution. */
static void distributions(void) {
    char name[] = "a";
    int chunk[] = {1, COLUMNS}, grid[2], block[] = {8, 7}, width[] = {2, 3}, wide[] = {-1, -1}, g;
    int map[4], cuts = 0, map_tiled[40];
    grid_of(grid);
    all("regular", NGA_Create(C_DBL, 2, shape, name, NULL));
    all("by rows", NGA_Create(C_DBL, 2, shape, name, chunk));
    map[cuts++] = 0;
    if (grid[0] == 2) map[cuts++] = 13;
    map[cuts++] = 0;
    if (grid[1] == 2) map[cuts++] = 29;
    all("irregular", NGA_Create_irreg(C_DBL, 2, shape, name, grid, map));
    g = by_handle();
    GA_Set_irreg_distr(g, map, grid);
    all("irregular by handle", allocated(g));
    g = by_handle();
    GA_Set_chunk(g, chunk);
    GA_Set_pgroup(g, GA_Pgroup_get_world());
    all("by handle", allocated(g));
    g = by_handle();
    GA_Set_block_cyclic(g, block);
    all("block-cyclic", allocated(g));
    g = by_handle();
    GA_Set_block_cyclic_proc_grid(g, block, grid);
    all("block-cyclic on a grid", allocated(g));
    g = by_handle();
    GA_Set_tiled_proc_grid(g, block, grid);
    all("tiled", allocated(g));
    int tiles[] = {6, 5}, n = 0;
    for (int i = 0; i < 6; i++) map_tiled[n++] = i == 0 ? 0 : 9 * i + i % 2;
    for (int j = 0; j < 5; j++) map_tiled[n++] = j == 0 ? 0 : 8 * j + j % 3;
    g = by_handle();
    GA_Set_tiled_irreg_proc_grid(g, map_tiled, tiles, grid);
    all("tiled irregularly", allocated(g));
    g = by_handle();
    GA_Set_restricted_range(g, 0, nproc > 2 ? 1 : 0);
    all("restricted", allocated(g));
    int list[] = {nproc - 1};
    g = by_handle();
    GA_Set_restricted(g, list, 1);
    all("restricted to the last", allocated(g));
    all("with ghosts", NGA_Create_ghosts(C_DBL, 2, shape, width, name, wide));
    all("with ghosts, irregular", NGA_Create_ghosts_irreg(C_DBL, 2, shape, width, name, grid, map));
    all("configured", NGA_Create_config(C_DBL, 2, shape, name, chunk, GA_Pgroup_get_world()));
    int64_t large[] = {ROWS, COLUMNS};
    all("of 64 bits", NGA_Create64(C_DBL, 2, large, name, NULL));
}

/* Each type of elements. */
static void types(void) {
    static const struct {
        int type;
        const char *name;
    } types[] = {{C_INT, "int"},      {C_LONG, "long"},          {C_LONGLONG, "long long"}, {C_FLOAT, "float"},
                 {C_DBL, "double"},   {C_SCPL, "single complex"}, {C_DCPL, "double complex"}};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        int type = types[t].type, lo[] = {3, 3}, hi[] = {42, 40}, ld[] = {38};
        const char *kind = types[t].name;
        char name[] = "t";
        char alpha[16], *buffer = calloc(40 * 38, size_of(type));
        int g = NGA_Create(type, 2, shape, name, NULL), h = GA_Duplicate(g, name);
        fill_array(g, 1);
        show_array(about(kind, "filled"), g);
        for (int k = 0; k < 40 * 38; k++) set(type, buffer, k, k % 17);
        set(type, alpha, 0, 2);
        if (type != C_LONGLONG) NGA_Acc(g, lo, hi, buffer, ld, alpha); /* which it does not accumulate */
        show_array(about(kind, "accumulated"), g);
        GA_Fill(h, alpha);
        GA_Add(alpha, g, alpha, h, h);
        show_array(about(kind, "added"), h);
        GA_Scale(h, alpha);
        NGA_Copy_patch('n', g, lo, hi, h, lo, hi);
        show_array(about(kind, "scaled and copied into"), h);
        int index[2];
        char extreme[16], max[] = "max", min[] = "min";
        if (type != C_SCPL && type != C_DCPL) {
            int most[] = {17, 23}, least[] = {44, 5};
            set(type, extreme, 0, 9999); /* of equal ones, each library may choose its own */
            if (me == 0) NGA_Put(g, most, most, extreme, ld);
            set(type, extreme, 0, -9999);
            if (me == nproc - 1) NGA_Put(g, least, least, extreme, ld);
            GA_Sync();
            NGA_Select_elem(g, max, extreme, index);
            show(about(kind, "largest"), 3, (double[]){get(type, extreme, 0), index[0], index[1]});
            NGA_Select_elem(g, min, extreme, index);
            show(about(kind, "smallest"), 3, (double[]){get(type, extreme, 0), index[0], index[1]});
        }
        if (type == C_INT || type == C_LONG || type == C_LONGLONG) {
            int corner[] = {ROWS - 1, COLUMNS - 1};
            if (type != C_LONGLONG)
                for (int k = 0; k < 20; k++) NGA_Read_inc(g, corner, 3);
            show_array(about(kind, "read and incremented"), g);
        }
        GA_Zero(g);
        show_array(about(kind, "zero"), g);
        GA_Destroy(g);
        GA_Destroy(h);
        free(buffer);
    }
}

/* One to five dimensions. */
static void dimensions(void) {
    int dims[] = {11, 6, 7, 5, 4};
    for (int n = 1; n <= 5; n++) {
        char kind[20], name[] = "d";
        snprintf(kind, sizeof kind, "%d dimensions", n);
        int lo[5], hi[5], ld[5], skip[5], chunk[5] = {-1, -1, -1, -1, -1}, width[] = {1, 1, 2, 1, 1};
        long count = 1;
        for (int d = 0; d < n; d++) lo[d] = 1, hi[d] = dims[d] - 2, skip[d] = 1 + d % 2, count *= dims[d];
        for (int d = 1; d < n; d++) ld[d - 1] = dims[d] - 2;
        if (n == 1) ld[0] = 1;
        double *buffer = calloc(count, sizeof *buffer), alpha = 1.5;
        for (int ghosts = 0; ghosts < 2; ghosts++) {
            int g = ghosts ? NGA_Create_ghosts(C_DBL, n, dims, width, name, chunk) : NGA_Create(C_DBL, n, dims, name, chunk);
            fill_array(g, 2);
            for (long k = 0; k < count; k++) buffer[k] = k % 19;
            NGA_Acc(g, lo, hi, buffer, ld, &alpha);
            show_array(about(kind, ghosts ? "with ghosts, accumulated" : "accumulated"), g);
            NGA_Get(g, lo, hi, buffer, ld);
            show_buffer(about(kind, "got"), C_DBL, buffer, count);
            if (!ghosts) {
                memset(buffer, 0, count * sizeof *buffer);
                NGA_Strided_get(g, lo, hi, skip, buffer, ld);
                show_buffer(about(kind, "got with strides"), C_DBL, buffer, count);
            }
            for (int d = 0; d < n; d++) hi[d] = dims[d], lo[d] = -1;
            for (int d = 1; d < n; d++) ld[d - 1] = dims[d] + 2;
            long around = 1;
            for (int d = 0; d < n; d++) around *= dims[d] + 2;
            double *wide = calloc(around, sizeof *wide);
            NGA_Periodic_get(g, lo, hi, wide, ld);
            show_buffer(about(kind, "got around the edge"), C_DBL, wide, around);
            free(wide);
            GA_Sync();
            if (ghosts) {
                GA_Update_ghosts(g);
                int extents[5], steps[5];
                double *mine, sum = 0;
                char plus[] = "+";
                long mine_count = 1;
                NGA_Access_ghosts(g, extents, &mine, steps);
                for (int d = 0; d < n; d++) mine_count *= extents[d];
                for (long k = 0; k < mine_count; k++) sum += mine[k];
                NGA_Release_ghosts(g);
                GA_Dgop(&sum, 1, plus);
                show1(about(kind, "ghosts"), sum);
            }
            for (int d = 0; d < n; d++) lo[d] = 1, hi[d] = dims[d] - 2;
            for (int d = 1; d < n; d++) ld[d - 1] = dims[d] - 2;
            GA_Destroy(g);
        }
        free(buffer);
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    distributions();
    types();
    dimensions();
    end();
    return 0;
}
