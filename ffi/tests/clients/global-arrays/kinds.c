/* Kinds of arrays beside the usual: of records whose fields are moved alone, mirrored, read-only, laid over another array,
   random; blocks and ghosts one by one; what may be asked of arrays and of the library. */
#include "show.h"
#include <stddef.h>

enum { ROWS = 36, COLUMNS = 25 };
static int shape[] = {ROWS, COLUMNS};
static char name[] = "kind", plus[] = "+";

/* A sum over all ranks. */
static void show_sum(const char *what, double number) {
    GA_Dgop(&number, 1, plus);
    show1(what, number);
}

/* Records, of which each field is moved without the others. */
static void fields(void) {
    struct record {
        double weight;
        int count;
        char mark;
    } records[40];
    int type = NGA_Register_type(sizeof(struct record)), dims[] = {40}, lo[] = {0}, hi[] = {39}, ld[] = {1};
    int g = NGA_Create(type, 1, dims, name, NULL), counts[40];
    double weights[40];
    ga_nbhdl_t put, get;
    memset(records, 0, sizeof records);
    for (int k = 0; k < 40; k++) records[k] = (struct record){k / 2., 3 * k, (char)(k % 26 + 'a')};
    if (me == 0) NGA_Put(g, lo, hi, records, ld);
    GA_Sync();
    for (int k = 0; k < 40; k++) counts[k] = -1, weights[k] = 1000 + k;
    NGA_Get_field(g, lo, hi, offsetof(struct record, count), sizeof(int), counts, ld);
    show_buffer("a field", C_INT, counts, 40);
    GA_Sync();
    lo[0] = 5, hi[0] = 34;
    if (me == nproc - 1) NGA_Put_field(g, lo, hi, offsetof(struct record, weight), sizeof(double), weights, ld);
    GA_Sync();
    for (int k = 0; k < 40; k++) counts[k] = 10000 * me + k;
    lo[0] = hi[0] = 7 * me;
    NGA_Nbput_field(g, lo, hi, offsetof(struct record, count), sizeof(int), counts + me, ld, &put);
    NGA_NbWait(&put);
    GA_Sync();
    lo[0] = 0, hi[0] = 39;
    NGA_Nbget_field(g, lo, hi, offsetof(struct record, weight), sizeof(double), weights, ld, &get);
    NGA_NbWait(&get);
    show_buffer("another field", C_DBL, weights, 40);
    memset(records, 0, sizeof records);
    NGA_Get(g, lo, hi, records, ld);
    for (int k = 0; k < 40; k++) {
        CHECK(records[k].mark == (char)(k % 26 + 'a'));
        CHECK(records[k].weight == weights[k]);
        counts[k] = records[k].count;
    }
    show_buffer("fields together", C_INT, counts, 40);
    GA_Sync();
    GA_Destroy(g);
    show1("types", NGA_Deregister_type(type));
}

/* One copy on each node, which are then added up. */
static void mirrored(void) {
    int mirror = GA_Pgroup_get_mirror(), lo[] = {2, 3}, hi[] = {30, 20}, ld[] = {18};
    int g = NGA_Create_config(C_DBL, 2, shape, name, NULL, mirror), h = NGA_Create(C_DBL, 2, shape, name, NULL);
    double buffer[29 * 18], alpha = 1;
    for (int k = 0; k < 29 * 18; k++) buffer[k] = k % 13 + me;
    GA_Zero(g);
    NGA_Acc(g, lo, hi, buffer, ld, &alpha);
    GA_Sync();
    GA_Merge_mirrored(g);
    GA_Copy(g, h);
    show_array("merged", h);
    show1("dot of mirrored", GA_Ddot(g, g));
    GA_Destroy(g);
    GA_Destroy(h);
}

/* An array that is not written for a while, and may be copied to where it is read. */
static void properties(void) {
    char *kinds[] = {"read_only", "read_cache"};
    int lo[] = {0, 0}, hi[] = {ROWS - 1, COLUMNS - 1}, ld[] = {COLUMNS};
    double buffer[ROWS * COLUMNS], two = 2;
    for (int k = 0; k < 2; k++) {
        int g = NGA_Create(C_DBL, 2, shape, name, NULL);
        fill_array(g, 1);
        NGA_Set_property(g, kinds[k]);
        for (int times = 0; times < 3; times++) NGA_Get(g, lo, hi, buffer, ld);
        show_buffer(kinds[k], C_DBL, buffer, ROWS * COLUMNS);
        double sum = 0;
        for (int i = 0; i < ROWS * COLUMNS; i++) sum += buffer[i];
        show_sum(kinds[k], sum);
        NGA_Unset_property(g);
        NGA_Acc(g, lo, hi, buffer, ld, &two);
        show_array(kinds[k], g);
        GA_Destroy(g);
    }
}

/* A smaller array in the memory of a larger. */
static void overlaid(void) {
    int small[] = {ROWS / 2, COLUMNS};
    double one = 1;
    int below = NGA_Create(C_DBL, 2, shape, name, NULL), above = NGA_Create_handle();
    NGA_Set_data(above, 2, small, C_DBL);
    CHECK(GA_Overlay(above, below));
    fill_array(above, 1);
    show_array("laid over", above);
    GA_Add_constant(above, &one);
    show1("dot of what is laid over", GA_Ddot(above, above));
    GA_Destroy(above);
    fill_array(below, 2);
    show_array("what lay below", below);
    GA_Destroy(below);
}

/* Blocks by their number and by their place. */
static void blocks(void) {
    int block[] = {7, 6}, grid[] = {nproc >= 2 ? 2 : 1, nproc >= 2 ? nproc / 2 : 1}, counts[2], sizes[2], ld[2], at[2];
    for (int on_grid = 0; on_grid < 2; on_grid++) {
        int g = NGA_Create_handle();
        double *mine;
        NGA_Set_data(g, 2, shape, C_DBL);
        if (on_grid)
            NGA_Set_block_cyclic_proc_grid(g, block, grid);
        else
            NGA_Set_block_cyclic(g, block);
        CHECK(NGA_Allocate(g));
        GA_Zero(g);
        NGA_Get_block_info(g, counts, sizes);
        show("blocks", 6, (double[]){counts[0], counts[1], sizes[0], sizes[1], NGA_Total_blocks(g), NGA_Uses_proc_grid(g)});
        if (on_grid) {
            NGA_Get_proc_grid(g, at);
            show("grid", 2, (double[]){at[0], at[1]});
            NGA_Get_proc_index(g, me, at);
            for (at[0] = at[0]; at[0] < counts[0]; at[0] += grid[0]) {
                int first[2];
                NGA_Get_proc_index(g, me, first);
                for (at[1] = first[1]; at[1] < counts[1]; at[1] += grid[1]) {
                    NGA_Access_block_grid(g, at, &mine, ld);
                    mine[0] = 1 + at[0] + 10 * at[1];
                    NGA_Release_update_block_grid(g, at);
                }
            }
        } else {
            for (int number = me; number < NGA_Total_blocks(g); number += nproc) {
                NGA_Access_block(g, number, &mine, ld);
                mine[0] = 1 + number;
                NGA_Release_update_block(g, number);
            }
        }
        show_array("first elements of blocks", g);
        int lo[] = {3, 3}, hi[] = {20, 20};
        show1("blocks of a patch", NGA_Locate_num_blocks(g, lo, hi));
        GA_Destroy(g);
    }
}

/* Ghosts as elements, as a block with what surrounds it, in one direction, without blocking. */
static void ghosts(void) {
    int width[] = {2, 1}, lo[2], hi[2], at[] = {0, 0}, ld[2], extents[2];
    int g = NGA_Create_ghosts(C_DBL, 2, shape, width, name, NULL);
    double *element, *all, sum;
    ga_nbhdl_t update;
    fill_array(g, 1);
    show("ghosts", 2, (double[]){NGA_Has_ghosts(g), NGA_Ndim(g)});
    NGA_Update_ghosts(g);
    NGA_Access_ghost_element(g, &element, at, ld);
    show_sum("a corner", element[0]);
    NGA_Release_ghost_element(g, at);
    NGA_Access_ghosts(g, extents, &all, ld);
    sum = 0;
    for (int i = 0; i < extents[0]; i++)
        for (int j = 0; j < extents[1]; j++) sum += (i + 2 * j + 1) * all[i * ld[0] + j];
    NGA_Release_ghosts(g);
    show_sum("all of them", sum);

    NGA_Distribution(g, me, lo, hi);
    for (int d = 0; d < 2; d++) lo[d] -= width[d], hi[d] += width[d];
    int rows = hi[0] - lo[0] + 1, columns = hi[1] - lo[1] + 1, buffer_ld[] = {columns};
    double *buffer = calloc((size_t)rows * columns, sizeof *buffer);
    NGA_Get_ghost_block(g, lo, hi, buffer, buffer_ld);
    sum = 0;
    for (int k = 0; k < rows * columns; k++) sum += buffer[k] * (1 + k % 7);
    show_sum("a block and its ghosts", sum);
    free(buffer);

    for (int dimension = 0; dimension < 2; dimension++)
        for (int side = -1; side <= 1; side += 2) {
            fill_array(g, 2 + side + 3 * dimension);
            CHECK(NGA_Update_ghost_dir(g, dimension, side, 1));
            GA_Sync();
            NGA_Access_ghosts(g, extents, &all, ld);
            int i = dimension == 0 ? (side < 0 ? 0 : extents[0] - 1) : extents[0] / 2;
            int j = dimension == 1 ? (side < 0 ? 0 : extents[1] - 1) : extents[1] / 2;
            sum = all[i * ld[0] + j];
            NGA_Release_ghosts(g);
            show_sum("in one direction", sum);
            GA_Sync();
        }
    fill_array(g, 5);
    NGA_Update_ghosts_nb(g, &update);
    NGA_NbWait(&update);
    GA_Sync();
    NGA_Access_ghosts(g, extents, &all, ld);
    sum = 0;
    for (int j = 0; j < extents[1]; j++) sum += all[j] + all[(extents[0] - 1) * ld[0] + j];
    NGA_Release_ghosts(g);
    show_sum("without blocking", sum);
    GA_Destroy(g);
}

/* What is random is known by its bounds alone. */
static void random_numbers(void) {
    int g = NGA_Create(C_DBL, 2, shape, name, NULL), lo[] = {0, 0}, hi[] = {ROWS - 1, COLUMNS - 1}, ld[] = {COLUMNS};
    double most = 3, buffer[ROWS * COLUMNS];
    int distinct = 0;
    GA_Zero(g);
    NGA_Randomize(g, &most);
    GA_Sync();
    NGA_Get(g, lo, hi, buffer, ld);
    for (int k = 0; k < ROWS * COLUMNS; k++) {
        CHECK(buffer[k] >= 0 && buffer[k] <= most);
        distinct += k > 0 && buffer[k] != buffer[k - 1];
    }
    CHECK(distinct > ROWS * COLUMNS / 2);
    GA_Sync();
    GA_Destroy(g);
}

/* Memory of the library's kind for a program, an array made of parts that exist, and questions. */
static void questions(void) {
    int g = NGA_Create(C_DBL, 2, shape, name, NULL), list[16], blocks_of[2], at[2];
    /* (GA_List_nodeid writes past a buffer of the library's own.) */
    for (int r = 0; r < nproc; r++) list[r] = r;
    NGA_Nblock(g, blocks_of);
    NGA_Proc_topology(g, me, at);
    show("asked", 6, (double[]){NGA_Get_dimension(g), blocks_of[0], blocks_of[1], at[0], at[1], NGA_Valid_handle(g)});
    show("asked of groups", 3, (double[]){NGA_Get_pgroup_size(NGA_Get_pgroup(g)), NGA_Pgroup_nnodes(NGA_Pgroup_self()),
                                          NGA_Pgroup_absolute_id(NGA_Pgroup_self(), 0)});
    show("initialized", 1, (double[]){NGA_Initialized()});
    CHECK(strcmp(GA_Inquire_name(g), name) == 0);
    int everybody = NGA_Pgroup_create(list, nproc), twin = NGA_Pgroup_duplicate(everybody);
    double d = me + 1;
    float f = (float)me + 1;
    int i = me;
    long l = me;
    long long ll = me;
    DoubleComplex z = {me, 1};
    NGA_Pgroup_dgop(twin, &d, 1, plus);
    NGA_Pgroup_fgop(twin, &f, 1, plus);
    NGA_Pgroup_igop(twin, &i, 1, plus);
    NGA_Pgroup_lgop(twin, &l, 1, plus);
    NGA_Pgroup_llgop(twin, &ll, 1, plus);
    NGA_Pgroup_zgop(twin, &z, 1, plus);
    NGA_Pgroup_sync(twin);
    show("in a twin of a group", 7, (double[]){d, f, i, (double)l, (double)ll, z.real, z.imag});
    NGA_Pgroup_destroy(twin);
    NGA_Pgroup_destroy(everybody);
    GA_Destroy(g);

    /* Each rank's part, in one block. */
    double *part = GA_Getmem(C_DBL, 50, GA_Pgroup_get_world());
    CHECK(part != NULL);
    for (int k = 0; k < 50; k++) part[k] = me + k;
    GA_Sync();
    show_sum("memory of a program's", part[49]);
    GA_Sync();
    GA_Freemem(part);

    /* Meetings may be left out by who meets anyway. */
    int n = NGA_Create(C_DBL, 2, shape, name, NULL);
    double one = 1;
    GA_Mask_sync(0, 0);
    GA_Zero(n);
    GA_Sync();
    GA_Mask_sync(1, 0);
    GA_Fill(n, &one);
    GA_Sync();
    show_array("without meetings", n);
    NGA_Deallocate(n);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    fields();
    mirrored();
    properties();
    overlaid();
    blocks();
    ghosts();
    random_numbers();
    questions();
    end();
    return 0;
}
