/* The forms that take places and sizes of 64 bits, each beside what it does in the other programs: creation, moving elements,
   patches, products, scans. */
#include "show.h"

enum { ROWS = 40, COLUMNS = 31 };
static int64_t shape[] = {ROWS, COLUMNS};
static char name[] = "form";

static int made(double scale) {
    int g = NGA_Create64(C_DBL, 2, shape, name, NULL);
    fill_array(g, scale);
    return g;
}

static int handle(void) {
    int g = NGA_Create_handle();
    NGA_Set_data64(g, 2, shape, C_DBL);
    NGA_Set_array_name(g, name);
    return g;
}

static int allocated(int g) {
    CHECK(NGA_Allocate(g));
    return g;
}

static void tell(const char *kind, const char *what, int g) {
    char line[80];
    snprintf(line, sizeof line, "%s, %s", kind, what);
    show_array(line, g);
}

/* Elements go in and out of an array, and its owners are asked for. (Scatter and gather with lists of pointers are left
   out: with subscripts of 64 bits they find other elements, several the same one, on any ARMCI.) */
static void moved(const char *kind, int g) {
    int64_t lo[] = {3, 4}, hi[] = {32, 24}, ld[] = {21}, skip[] = {3, 2}, around_lo[] = {-4, 20}, around_hi[] = {9, 40};
    double buffer[30 * 21], values[40], alpha = 1.5;
    ga_nbhdl_t put, acc, get;
    char line[80];
    fill_array(g, 1);
    for (int k = 0; k < 30 * 21; k++) buffer[k] = k % 23 + me;
    NGA_Acc64(g, lo, hi, buffer, ld, &alpha);
    tell(kind, "accumulated", g);
    for (int k = 0; k < 30 * 21; k++) buffer[k] = k % 19;
    if (me == nproc - 1) NGA_Put64(g, lo, hi, buffer, ld);
    GA_Sync();
    NGA_NbAcc64(g, lo, hi, buffer, ld, &alpha, &acc);
    NGA_NbWait(&acc);
    tell(kind, "put, and accumulated without blocking", g);
    int64_t row_lo[] = {me, 0}, row_hi[] = {me, 20};
    NGA_NbPut64(g, row_lo, row_hi, buffer, ld, &put);
    NGA_NbWait(&put);
    GA_Sync();
    NGA_NbGet64(g, lo, hi, buffer, ld, &get);
    NGA_NbWait(&get);
    snprintf(line, sizeof line, "%s, got without blocking", kind);
    show_buffer(line, C_DBL, buffer, 30 * 21);
    GA_Sync();
    if (me == 0) NGA_Periodic_put64(g, around_lo, around_hi, buffer, ld);
    GA_Sync();
    NGA_Periodic_acc64(g, around_lo, around_hi, buffer, ld, &alpha);
    tell(kind, "around the edge", g);
    NGA_Periodic_get64(g, around_lo, around_hi, buffer, ld);
    snprintf(line, sizeof line, "%s, got around the edge", kind);
    show_buffer(line, C_DBL, buffer, 14 * 21);
    if (GA_Total_blocks(g) < 0) {
        int64_t ld_strided[] = {11};
        NGA_Strided_get64(g, lo, hi, skip, buffer, ld_strided);
        GA_Sync();
        if (me == 0) NGA_Strided_put64(g, lo, hi, skip, buffer + 1, ld_strided);
        GA_Sync();
        NGA_Strided_acc64(g, lo, hi, skip, buffer, ld_strided, &alpha);
        tell(kind, "with strides", g);
    }

    int64_t at[40][2];
    for (int k = 0; k < 40; k++) {
        int place = (k * nproc + me) * 7 % (ROWS * COLUMNS);
        at[k][0] = place / COLUMNS, at[k][1] = place % COLUMNS, values[k] = place - 3;
    }
    GA_Sync();
    NGA_Scatter_flat64(g, values, at[0], 40);
    GA_Sync();
    NGA_Scatter_acc_flat64(g, values, at[0], 40, &alpha);
    tell(kind, "scattered", g);
    NGA_Gather_flat64(g, values, at[0], 40);
    snprintf(line, sizeof line, "%s, gathered", kind);
    show_buffer(line, C_DBL, values, 40);
    GA_Sync();
    NGA_Scatter_flat64(g, values, at[0], 40);
    tell(kind, "scattered flat", g);

    double numbers[24];
    for (int k = 0; k < 12; k++) numbers[k] = NGA_Locate64(g, at[k]);
    snprintf(line, sizeof line, "%s, owners", kind);
    show(line, 12, numbers);
    int type, ndim;
    int64_t dims[2];
    NGA_Inquire64(g, &type, &ndim, dims);
    show(line, 4, (double[]){type == C_DBL, ndim, (double)dims[0], (double)dims[1]});
    NGA_Distribution64(g, nproc - 1, lo, hi);
    show(line, 4, (double[]){(double)lo[0], (double)lo[1], (double)hi[0], (double)hi[1]});
    if (GA_Total_blocks(g) < 0) {
        int procs[16];
        int64_t map[64], patch_lo[] = {5, 5}, patch_hi[] = {35, 28};
        int count = NGA_Locate_region64(g, patch_lo, patch_hi, map, procs);
        show(line, 2, (double[]){count, NGA_Locate_nnodes64(g, patch_lo, patch_hi)});
        NGA_Distribution64(g, me, lo, hi);
        if (lo[0] >= 0 && lo[0] <= hi[0]) {
            double *mine;
            NGA_Access64(g, lo, hi, &mine, ld);
            for (int64_t i = 0; i <= hi[0] - lo[0]; i++) mine[i * ld[0]] += (double)(me + i);
            NGA_Release_update64(g, lo, hi);
        }
        tell(kind, "changed in place", g);
    }
    GA_Destroy(g);
}

static void creations(void) {
    int64_t chunk[] = {-1, COLUMNS}, width[] = {1, 2}, block[] = {6, 5}, grid[2], map[4], tiles[] = {4, 3}, cuts[7];
    int n = 0, world = GA_Pgroup_get_world();
    grid[0] = nproc >= 2 ? 2 : 1, grid[1] = nproc / grid[0];
    map[n++] = 0;
    if (grid[0] == 2) map[n++] = 17;
    map[n++] = 0;
    if (grid[1] == 2) map[n++] = 12;
    for (int k = 0; k < 4; k++) cuts[k] = 10 * k + (k == 2);
    for (int k = 0; k < 3; k++) cuts[4 + k] = 9 * k;
    moved("configured", NGA_Create_config64(C_DBL, 2, shape, name, chunk, world));
    moved("irregular", NGA_Create_irreg64(C_DBL, 2, shape, name, grid, map));
    moved("irregular, configured", NGA_Create_irreg_config64(C_DBL, 2, shape, name, grid, map, world));
    moved("ghosts", NGA_Create_ghosts64(C_DBL, 2, shape, width, name, NULL));
    moved("ghosts, configured", NGA_Create_ghosts_config64(C_DBL, 2, shape, width, name, NULL, world));
    moved("ghosts, irregular", NGA_Create_ghosts_irreg64(C_DBL, 2, shape, width, name, grid, map));
    moved("ghosts, irregular, configured", NGA_Create_ghosts_irreg_config64(C_DBL, 2, shape, width, name, grid, map, world));
    int g = handle();
    GA_Set_chunk64(g, chunk);
    NGA_Set_pgroup(g, world);
    moved("handle", allocated(g));
    g = handle();
    NGA_Set_irreg_distr64(g, map, grid);
    moved("handle, irregular", allocated(g));
    g = handle();
    NGA_Set_ghosts64(g, width);
    moved("handle, ghosts", allocated(g));
    g = handle();
    NGA_Set_block_cyclic64(g, block);
    moved("handle, blocks", allocated(g));
    g = handle();
    NGA_Set_block_cyclic_proc_grid64(g, block, grid);
    moved("handle, blocks on a grid", allocated(g));
    g = handle();
    NGA_Set_tiled_proc_grid64(g, block, grid);
    moved("handle, tiles", allocated(g));
    g = handle();
    NGA_Set_tiled_irreg_proc_grid64(g, cuts, tiles, grid);
    moved("handle, irregular tiles", allocated(g));
}

/* Element by element, on patches of the same shape at three places. */
static void patches(void) {
    int a = made(1), b = made(0.5), c = made(0), m = made(2);
    int64_t alo[] = {1, 2}, ahi[] = {20, 16}, blo[] = {11, 4}, bhi[] = {30, 18}, clo[] = {5, 15}, chi[] = {24, 29};
    double two = 2, third = 1. / 3, value;
    int64_t index[2];
    GA_Elem_multiply_patch64(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("multiply", c);
    GA_Elem_divide_patch64(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("divide", c);
    GA_Elem_maximum_patch64(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("maximum", c);
    GA_Elem_minimum_patch64(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("minimum", c);
    NGA_Add_patch64(&two, a, alo, ahi, &third, b, blo, bhi, c, clo, chi);
    show_array("add", c);
    GA_Add_constant_patch64(c, clo, chi, &third);
    NGA_Scale_patch64(c, clo, chi, &two);
    show_array("scale", c);
    GA_Recip_patch64(c, clo, chi);
    show_array("recip", c);
    value = -4;
    NGA_Fill_patch64(c, blo, bhi, &value);
    GA_Abs_value_patch64(c, alo, ahi);
    show_array("abs_value", c);
    NGA_Zero_patch64(c, alo, alo);
    NGA_Copy_patch64('n', a, alo, ahi, m, blo, bhi);
    show_array("copy", m);
    GA_Median_patch64(a, alo, ahi, b, blo, bhi, m, clo, chi, c, clo, chi);
    show_array("median", c);
    show1("ddot", NGA_Ddot_patch64(a, 'n', alo, ahi, b, 'n', blo, bhi));
    int64_t last[] = {ROWS - 1, COLUMNS - 1};
    value = 9999;
    if (me == 0) NGA_Put64(a, last, last, &value, last);
    GA_Sync();
    char most[] = "max";
    NGA_Select_elem64(a, most, &value, index);
    show("select", 3, (double[]){value, (double)index[0], (double)index[1]});
    /* Of a part, it also looks at elements of its own outside of it, which nothing has set. */
    int64_t first[] = {0, 0};
    value = -third;
    GA_Fill(c, &value);
    GA_Step_max_patch64(b, first, last, c, first, last, &value);
    show1("step_max", value);
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(c);
    GA_Destroy(m);

    /* Each type's own dot product. */
    static const int types[] = {C_INT, C_LONG, C_LONGLONG, C_FLOAT, C_SCPL, C_DCPL};
    int64_t n[] = {50}, lo[] = {2}, hi[] = {40};
    for (int t = 0; t < 6; t++) {
        int x = NGA_Create64(types[t], 1, n, name, NULL), y = NGA_Duplicate(x, name);
        fill_array(x, 1);
        GA_Copy(x, y);
        SingleComplex c1;
        DoubleComplex z1;
        switch (types[t]) {
        case C_INT: show1("idot", NGA_Idot_patch64(x, 'n', lo, hi, y, 'n', lo, hi)); break;
        case C_LONG: show1("ldot", (double)NGA_Ldot_patch64(x, 'n', lo, hi, y, 'n', lo, hi)); break;
        case C_LONGLONG: show1("lldot", (double)NGA_Lldot_patch64(x, 'n', lo, hi, y, 'n', lo, hi)); break;
        case C_FLOAT: show1("fdot", NGA_Fdot_patch64(x, 'n', lo, hi, y, 'n', lo, hi)); break;
        case C_SCPL:
            c1 = NGA_Cdot_patch64(x, 'n', lo, hi, y, 'n', lo, hi);
            show("cdot", 2, (double[]){c1.real, c1.imag});
            break;
        case C_DCPL:
            z1 = NGA_Zdot_patch64(x, 'n', lo, hi, y, 'n', lo, hi);
            show("zdot", 2, (double[]){z1.real, z1.imag});
            break;
        }
        NGA_Destroy(x);
        NGA_Destroy(y);
    }
}

/* Products of whole matrices of each type, and of patches. */
static void products(void) {
    static const int types[] = {C_DBL, C_FLOAT, C_SCPL, C_DCPL};
    int64_t square[] = {24, 24}, lo[] = {0, 0}, hi[] = {15, 15}, clo[] = {8, 6}, chi[] = {23, 21};
    for (int t = 0; t < 4; t++) {
        int a = NGA_Create64(types[t], 2, square, name, NULL), b = NGA_Duplicate(a, name), c = NGA_Duplicate(a, name);
        /* Small whole numbers, whose sums are exact in any order. */
        fill_array(a, 1);
        fill_array(b, 2);
        GA_Zero(c);
        SingleComplex one_c = {1, 0}, zero_c = {0, 0};
        DoubleComplex one_z = {1, 0}, zero_z = {0, 0};
        switch (types[t]) {
        case C_DBL: GA_Dgemm64('n', 't', 24, 24, 24, 1, a, b, 0, c); break;
        case C_FLOAT: GA_Sgemm64('n', 'n', 24, 24, 24, 1, a, b, 0, c); break;
        case C_SCPL: GA_Cgemm64('t', 'n', 24, 24, 24, one_c, a, b, zero_c, c); break;
        case C_DCPL: GA_Zgemm64('n', 'n', 24, 24, 24, one_z, a, b, zero_z, c); break;
        }
        show_array("gemm", c);
        if (types[t] == C_DBL) {
            double one = 1, half = 0.5;
            NGA_Matmul_patch64('n', 'n', &one, &half, a, lo, hi, b, lo, hi, c, clo, chi);
            show_array("nga_matmul_patch", c);
            GA_Matmul_patch64('t', 'n', &one, &half, a, 0, 15, 0, 15, b, 4, 19, 4, 19, c, 1, 16, 2, 17);
            show_array("ga_matmul_patch", c);
        }
        GA_Destroy(a);
        GA_Destroy(b);
        GA_Destroy(c);
    }
}

/* Arrays of one dimension, cut in segments. */
static void scans(void) {
    int64_t n[] = {60}, count = 0;
    int start = 5, step = 3, mask = NGA_Create64(C_INT, 1, n, name, NULL);
    int source = NGA_Duplicate(mask, name), target = NGA_Duplicate(mask, name);
    GA_Zero(mask);
    if (me == 0) {
        int one = 1;
        int64_t ld[] = {1};
        for (int64_t k = 0; k < 60; k += 1 + k % 7) NGA_Put64(mask, &k, &k, &one, ld);
    }
    GA_Sync();
    GA_Patch_enum64(source, 0, 59, &start, &step);
    show_array("patch_enum", source);
    GA_Zero(target);
    GA_Scan_copy64(source, target, mask, 0, 59);
    show_array("scan_copy", target);
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        GA_Zero(target);
        GA_Scan_add64(source, target, mask, 0, 59, exclusive);
        show_array("scan_add", target);
    }
    GA_Zero(target);
    GA_Pack64(source, target, mask, 0, 59, &count);
    show1("packed", (double)count);
    show_array("pack", target);
    GA_Zero(source);
    GA_Unpack64(target, source, mask, 0, 59, &count);
    show1("unpacked", (double)count);
    show_array("unpack", source);
    long total = 0;
    char plus[] = "+";
    int64_t at[] = {7};
    int counter = NGA_Create64(C_LONG, 1, n, name, NULL);
    NGA_Zero(counter);
    for (int k = 0; k < 50; k++) total += NGA_Read_inc64(counter, at, 1);
    GA_Lgop(&total, 1, plus);
    show("read_inc", 2, (double[]){(double)total, (double)NGA_Read_inc64(counter, at, 0)});
    GA_Sync();
    GA_Destroy(counter);
    GA_Destroy(mask);
    GA_Destroy(source);
    GA_Destroy(target);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    creations();
    patches();
    products();
    scans();
    end();
    return 0;
}
