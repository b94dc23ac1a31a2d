/* Ten lines of Global Arrays, in C: see docs/global-arrays-compared.md. Built and run so:
 *   mpicc ten_lines.c -o ten_lines $(ga-config --cppflags --ldflags) $(ga-config --libs --flibs)
 *   mpirun -n 2 ./ten_lines
 */
#include <mpi.h>
#include <stdio.h>
#include "ga.h"
#include "macdecls.h"

#define N 100
#define TASKS 50

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 1000000, 1000000);

    /* create, fill */
    int dims[] = {N, N}, one[] = {1}, lo[] = {10, 40}, hi[] = {11, 42}, ld[] = {3}, zero[] = {0};
    int a = NGA_Create(C_DBL, 2, dims, "a", NULL);
    int b = GA_Duplicate(a, "b"), c = GA_Duplicate(a, "c");
    int counter = NGA_Create(C_LONG, 1, one, "counter", NULL);
    double two = 2.0, half = 0.5;
    GA_Fill(a, &two);
    GA_Fill(b, &half);
    GA_Zero(c);
    GA_Zero(counter);
    GA_Sync();

    /* put, accumulate, get of a patch */
    double patch[2][3] = {{1, 2, 3}, {4, 5, 6}};
    if (GA_Nodeid() == 0) {
        NGA_Put(a, lo, hi, patch, ld);
        NGA_Acc(a, lo, hi, patch, ld, &half);
    }
    GA_Sync();
    NGA_Get(a, lo, hi, patch, ld);

    /* share out tasks */
    double done = 0;
    for (long task = NGA_Read_inc(counter, zero, 1); task < TASKS; task = NGA_Read_inc(counter, zero, 1))
        done += (double) task;
    GA_Dgop(&done, 1, "+");

    /* multiply, dot */
    GA_Dgemm('N', 'N', N, N, N, 1.0, a, b, 0.0, c);
    double product = GA_Ddot(c, b);

    if (GA_Nodeid() == 0)
        printf("%.1f %.1f %.1f\n", patch[1][2], done, product);

    GA_Destroy(counter);
    GA_Destroy(c);
    GA_Destroy(b);
    GA_Destroy(a);
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
