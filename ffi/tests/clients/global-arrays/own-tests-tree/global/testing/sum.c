#include "shared.h"

/* Every rank adds one to all elements of an array. */
int main(int argc, char **argv) {
    int me = begin(&argc, &argv), dims[] = {20}, lo[] = {0}, hi[] = {19};
    int g = NGA_Create(C_DBL, 1, dims, "a", NULL);
    double one[20], got[20], scale = 1;
    for (int k = 0; k < 20; k++) one[k] = 1;
    GA_Zero(g);
    NGA_Acc(g, lo, hi, one, dims, &scale);
    GA_Sync();
    NGA_Get(g, lo, hi, got, dims);
    for (int k = 0; k < 20; k++)
        if (got[k] != GA_Nnodes()) printf("rank %d: error: element %d is %g\n", me, k, got[k]);
    if (me == 0) printf("0 errors\n");
    GA_Destroy(g);
    return end();
}
