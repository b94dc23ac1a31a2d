/* Groups of ranks, reductions and broadcasts of every type, mutexes, counters, printed arrays, files. */
#include "show.h"
#include <dra.h>
#include <tcgmsg.h>
#include <unistd.h>

enum { N = 20 };
static int shape[] = {N, N};

/* Each operation on each type, in a group. */
static void gops(const char *what, int group) {
    char *ops[] = {"+", "*", "max", "min", "absmax", "absmin"};
    char line[80];
    for (int op = 0; op < 6; op++) {
        int i[3] = {me + 1, -me - 2, 3}, li = 0;
        long l[3] = {me + 1, -me - 2, 3};
        long long ll[3] = {me + 1, -me - 2, 3};
        float f[3] = {(float)me + 1, (float)-me - 2, 0.5f};
        double d[3] = {me + 1, -me - 2, 0.25}, all[15];
        GA_Pgroup_igop(group, i, 3, ops[op]);
        GA_Pgroup_lgop(group, l, 3, ops[op]);
        GA_Pgroup_llgop(group, ll, 3, ops[op]);
        GA_Pgroup_fgop(group, f, 3, ops[op]);
        GA_Pgroup_dgop(group, d, 3, ops[op]);
        for (int k = 0; k < 3; k++)
            all[li++] = i[k], all[li++] = (double)l[k], all[li++] = (double)ll[k], all[li++] = f[k], all[li++] = d[k];
        snprintf(line, sizeof line, "%s: gop %s", what, ops[op]);
        show(line, 15, all);
    }
    SingleComplex c[2] = {{1, 2}, {(float)me, 1}};
    DoubleComplex z[2] = {{1, 2}, {me, 1}};
    char plus[] = "+";
    GA_Pgroup_cgop(group, c, 2, plus);
    GA_Pgroup_zgop(group, z, 2, plus);
    show(what, 8, (double[]){c[0].real, c[0].imag, c[1].real, c[1].imag, z[0].real, z[0].imag, z[1].real, z[1].imag});
    int size = GA_Pgroup_nnodes(group), rank = GA_Pgroup_nodeid(group), long_message[5000];
    for (int root = 0; root < size; root++) {
        for (int k = 0; k < 5000; k++) long_message[k] = rank == root ? root * 100000 + k : -1;
        GA_Pgroup_brdcst(group, long_message, sizeof long_message, root);
        for (int k = 0; k < 5000; k++) CHECK(long_message[k] == root * 100000 + k);
    }
    GA_Pgroup_sync(group);
}

/* Arrays of a group: made, filled, reduced and copied into the world's. */
static void arrays_of(const char *what, int group) {
    int world = GA_Pgroup_get_default();
    char name[] = "g", line[80];
    int w = NGA_Create(C_DBL, 2, shape, name, NULL), lo[] = {0, 0}, hi[] = {N - 1, N - 1}, ld[] = {N};
    double buffer[N][N], part = 0.5;
    GA_Zero(w);
    GA_Pgroup_set_default(group);
    int g = NGA_Create(C_DBL, 2, shape, name, NULL), h = GA_Duplicate(g, name);
    double first = GA_Pgroup_absolute_id(group, 0) + 1;
    GA_Fill(g, &first);
    GA_Copy(g, h);
    GA_Scale(h, &part);
    snprintf(line, sizeof line, "%s: dot", what);
    show1(line, GA_Ddot(g, h));
    GA_Dgemm('n', 't', N, N, N, 1, g, h, 0, g == h ? h : g);
    GA_Sync();
    if (GA_Nodeid() == 0) {
        NGA_Get(h, lo, hi, buffer, ld);
        NGA_Acc(w, lo, hi, buffer, ld, &part); /* of the world, by one of each group */
    }
    GA_Destroy(g);
    GA_Destroy(h);
    GA_Sync();
    GA_Pgroup_set_default(world);
    GA_Sync();
    snprintf(line, sizeof line, "%s: accumulated in the world", what);
    show_array(line, w);
    GA_Destroy(w);
}

static void groups(void) {
    int list[nproc], count = 0;
    gops("the world", GA_Pgroup_get_world());
    int split = GA_Pgroup_split(GA_Pgroup_get_default(), nproc > 1 ? 2 : 1);
    gops("halves", split);
    arrays_of("halves", split);
    GA_Pgroup_destroy(split);
    split = GA_Pgroup_split_irreg(GA_Pgroup_get_default(), me % 2);
    gops("even and odd", split);
    arrays_of("even and odd", split);
    /* A group of a group. */
    GA_Pgroup_set_default(split);
    int size = GA_Nnodes(), rank = GA_Nodeid();
    list[count++] = rank;
    int inner = GA_Pgroup_create(list, count);
    gops("alone in a group", inner);
    show("ids", 4, (double[]){size, rank, GA_Pgroup_nnodes(inner), GA_Pgroup_absolute_id(inner, 0)});
    GA_Pgroup_destroy(inner);
    GA_Pgroup_set_default(GA_Pgroup_get_world());
    GA_Pgroup_destroy(split);
    /* The ranks backwards: a group sorts them. */
    count = 0;
    for (int r = nproc - 1; r >= 0; r--) list[count++] = r;
    int back = GA_Pgroup_create(list, count);
    show1("rank backwards", GA_Pgroup_nodeid(back));
    gops("backwards", back);
    GA_Pgroup_destroy(back);
}

/* Mutexes, fences, shared counters: what is exact in the end. */
static void counters(void) {
    char name[] = "n", plus[] = "+";
    int three[] = {3}, at[] = {1}, next[] = {2}, one[] = {1};
    for (int integers = 0; integers < 2; integers++) {
        int n = NGA_Create(integers ? C_INT : C_LONG, 1, three, name, NULL);
        GA_Zero(n);
        long sum = 0;
        for (int k = 0; k < 100; k++) sum += NGA_Read_inc(n, at, 1 + k % 2);
        GA_Sync();
        long total = NGA_Read_inc(n, at, 0);
        GA_Lgop(&sum, 1, plus);
        show1("counted", (double)total);
        GA_Destroy(n);
    }
    int n = NGA_Create(C_LONG, 1, three, name, NULL);
    GA_Zero(n);
    show1("create_mutexes", GA_Create_mutexes(5));
    for (int k = 0; k < 25; k++) {
        long held;
        GA_Lock(k % 5);
        GA_Unlock(k % 5);
        GA_Lock(4);
        NGA_Get(n, next, next, &held, one);
        held += 2;
        GA_Init_fence();
        NGA_Put(n, next, next, &held, one);
        GA_Fence();
        GA_Unlock(4);
    }
    GA_Sync();
    show1("counted under a mutex", (double)NGA_Read_inc(n, next, 0));
    GA_Sync();
    show1("destroy_mutexes", GA_Destroy_mutexes());
    GA_Destroy(n);

    /* TCGMSG's counter: every number is drawn once, and a negative count starts anew. It joins ARMCI once more, and leaves
       it in a call that also ends MPI, which is ended here by its own means. */
    char program[] = "groups", *arguments[] = {program, NULL};
    tcg_pbegin(1, arguments);
    for (int round = 0; round < 2; round++) {
        long drawn = 0, sum = 0;
        for (int k = 0; k < 50; k++, drawn++) sum += tcg_nxtval(nproc);
        GA_Lgop(&sum, 1, plus);
        GA_Lgop(&drawn, 1, plus);
        show("nxtval", 2, (double[]){(double)sum, (double)drawn});
        tcg_nxtval(-nproc);
    }
}

/* What Global Arrays prints. */
static void printed(void) {
    char name[] = "printed";
    int shape[] = {5, 4}, lo[] = {1, 1}, hi[] = {3, 2};
    int types[] = {C_DBL, C_INT, C_DCPL};
    for (int t = 0; t < 3; t++) {
        int g = NGA_Create(types[t], 2, shape, name, NULL);
        fill_array(g, 1);
        GA_Print(g);
        NGA_Print_patch(g, lo, hi, 1);
        GA_Print_distribution(g);
        show("name", 1, (double[]){(double)strlen(GA_Inquire_name(g))});
        GA_Destroy(g);
    }
    GA_Sync();
}

/* An array through a file, as a whole. */
static void files(void) {
    dra_size_t dims[] = {40, 30}, request_dims[] = {10, 10};
    int shape[] = {40, 30}, d, request;
    char name[] = "f", file[64];
    int number = me == 0 ? (int)getpid() : 0;
    GA_Brdcst(&number, sizeof number, 0);
    snprintf(file, sizeof file, "armci-client-%d.dra", number);
    show1("dra_init", DRA_Init(4, 1e6, 1e7, 1e6));
    int a = NGA_Create(C_DBL, 2, shape, name, NULL), b = GA_Duplicate(a, name);
    fill_array(a, 1);
    GA_Zero(b);
    show1("dra_create", NDRA_Create(C_DBL, 2, dims, name, file, DRA_RW, request_dims, &d));
    show1("dra_write", NDRA_Write(a, d, &request));
    show1("dra_wait", DRA_Wait(request));
    show1("dra_read", NDRA_Read(b, d, &request));
    show1("dra_wait", DRA_Wait(request));
    show_array("through a file", b);
    show1("dra_delete", DRA_Delete(d));
    show1("dra_terminate", DRA_Terminate());
    GA_Destroy(a);
    GA_Destroy(b);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    groups();
    counters();
    printed();
    files();
    end();
    return 0;
}
