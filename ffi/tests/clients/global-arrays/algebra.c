/* Global Arrays' arithmetic: of whole arrays and of patches, products, reductions, scans and solvers. */
#include "show.h"

enum { N = 36, M = 50 };
static int square[] = {N, N}, vector[] = {N};

static int array(int type, int ndim, int *dims, double scale) {
    char name[] = "a";
    int g = NGA_Create(type, ndim, dims, name, NULL);
    CHECK(g != 0);
    fill_array(g, scale);
    return g;
}

static int empty(int type, int ndim, int *dims) {
    int g = array(type, ndim, dims, 0);
    GA_Zero(g);
    return g;
}

/* Element by element: the whole and patches. */
static void elements(void) {
    int alo[] = {2, 3}, ahi[] = {21, 30}, blo[] = {5, 1}, bhi[] = {24, 28}, clo[] = {10, 8}, chi[] = {29, 35};
    double two = 2, third = 1. / 3, minus = -7.25;
    int a = array(C_DBL, 2, square, 1), b = array(C_DBL, 2, square, -0.75), c = empty(C_DBL, 2, square);
    int m = empty(C_DBL, 2, square);
    GA_Add_constant(b, &two);
    show_array("add_constant", b);
    GA_Add_constant_patch(b, blo, bhi, &minus);
    show_array("add_constant_patch", b);
    GA_Abs_value_patch(b, alo, ahi);
    show_array("abs_value_patch", b);
    GA_Elem_multiply(a, b, c);
    show_array("elem_multiply", c);
    GA_Elem_divide(a, a, c);
    show_array("elem_divide", c);
    GA_Elem_maximum(a, b, c);
    show_array("elem_maximum", c);
    GA_Elem_minimum(a, b, c);
    show_array("elem_minimum", c);
    GA_Elem_multiply_patch(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("elem_multiply_patch", c);
    GA_Elem_divide_patch(b, blo, bhi, a, alo, ahi, c, clo, chi);
    show_array("elem_divide_patch", c);
    GA_Elem_maximum_patch(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("elem_maximum_patch", c);
    GA_Elem_minimum_patch(a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("elem_minimum_patch", c);
    GA_Median(a, b, c, m);
    show_array("median", m);
    GA_Median_patch(a, alo, ahi, b, alo, ahi, c, alo, ahi, m, alo, ahi);
    show_array("median_patch", m);
    GA_Abs_value(b);
    show_array("abs_value", b);
    GA_Recip_patch(a, alo, ahi);
    show_array("recip_patch", a);
    GA_Recip(a);
    show_array("recip", a);
    GA_Add(&two, a, &third, b, c);
    show_array("add", c);
    NGA_Add_patch(&two, a, alo, ahi, &third, b, blo, bhi, c, clo, chi);
    show_array("add_patch", c);
    GA_Scale(c, &third);
    NGA_Scale_patch(c, alo, ahi, &two);
    show_array("scale_patch", c);
    NGA_Fill_patch(c, blo, bhi, &minus);
    show_array("fill_patch", c);
    NGA_Zero_patch(c, clo, chi);
    show_array("zero_patch", c);
    NGA_Copy_patch('n', a, alo, ahi, c, clo, chi);
    show_array("copy_patch", c);
    int tlo[] = {1, 2}, thi[] = {28, 21}, flat[] = {N * M}, flo[] = {100}, fhi[] = {100 + 20 * 28 - 1};
    NGA_Copy_patch('t', a, alo, ahi, c, tlo, thi);
    show_array("copy_patch, transposed", c);
    int f = empty(C_DBL, 1, flat);
    NGA_Copy_patch('n', a, alo, ahi, f, flo, fhi);
    show_array("copy_patch to another shape", f);
    double step;
    GA_Abs_value(a);
    GA_Add_constant(b, &two);
    GA_Scale(b, &minus);
    GA_Step_max(a, b, &step);
    show1("step_max", step);
    /* Of a true part it takes the rest of a temporary array into account, too, which is never written. */
    int wlo[] = {0, 0}, whi[] = {N - 1, N - 1};
    GA_Step_max_patch(a, wlo, whi, b, wlo, whi, &step);
    show1("step_max_patch", step);
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(c);
    GA_Destroy(m);
    GA_Destroy(f);
}

/* Inner products and norms. */
static void reductions(void) {
    int alo[] = {2, 3}, ahi[] = {21, 30}, tlo[] = {1, 2}, thi[] = {28, 21}, olo[] = {4, 4}, ohi[] = {23, 31};
    double norms[2];
    int a = array(C_DBL, 2, square, 1), b = array(C_DBL, 2, square, 0.125);
    show1("ddot", GA_Ddot(a, b));
    show1("ddot_patch", NGA_Ddot_patch(a, 'n', alo, ahi, b, 'n', olo, ohi));
    show1("ddot_patch, transposed", NGA_Ddot_patch(a, 'n', alo, ahi, b, 't', tlo, thi));
    GA_Norm1(b, &norms[0]);
    GA_Norm_infinity(b, &norms[1]);
    show("norms", 2, norms);
    int i = array(C_INT, 2, square, 1), l = array(C_LONG, 2, square, 2), r = array(C_FLOAT, 2, square, 1);
    show("dots of integers", 3,
         (double[]){GA_Idot(i, i), (double)GA_Ldot(l, l), NGA_Idot_patch(i, 'n', alo, ahi, i, 'n', olo, ohi)});
    show("dots of floats", 2, (double[]){GA_Fdot(r, r), NGA_Fdot_patch(r, 'n', alo, ahi, r, 't', tlo, thi)});
    int s = array(C_SCPL, 2, square, 1), z = array(C_DCPL, 2, square, 1);
    DoubleComplex zdot = GA_Zdot(z, z), zpatch = NGA_Zdot_patch(z, 'n', alo, ahi, z, 'n', olo, ohi);
    SingleComplex cdot = GA_Cdot(s, s);
    show("dots of complex numbers", 6, (double[]){zdot.real, zdot.imag, zpatch.real, zpatch.imag, cdot.real, cdot.imag});
    int all[] = {a, b, i, l, r, s, z};
    for (int k = 0; k < 7; k++) GA_Destroy(all[k]);
}

/* Products of matrices, and what moves their elements. */
static void products(void) {
    int wide[] = {N, M}, tall[] = {M, N};
    int a = array(C_DBL, 2, wide, 1), b = array(C_DBL, 2, tall, 0.5), c = array(C_DBL, 2, square, 1);
    double two = 2, half = 0.5;
    GA_Dgemm('n', 'n', N, N, M, 2, a, b, 0.5, c);
    show_array("dgemm", c);
    GA_Dgemm('t', 't', N, N, M, 1, b, a, 0, c);
    show_array("dgemm of transposes", c);
    GA_Matmul_patch('n', 'n', &two, &half, a, 0, 19, 5, 34, b, 3, 32, 2, 21, c, 7, 26, 9, 28);
    show_array("matmul_patch", c);
    int alo[] = {0, 5}, ahi[] = {19, 34}, blo[] = {3, 2}, bhi[] = {32, 21}, clo[] = {4, 9}, chi[] = {23, 28};
    NGA_Matmul_patch('n', 'n', &two, &half, a, alo, ahi, b, blo, bhi, c, clo, chi);
    show_array("matmul_patch by corners", c);
    int t = empty(C_DBL, 2, tall);
    GA_Transpose(a, t);
    show_array("transpose", t);
    GA_Symmetrize(c);
    show_array("symmetrize", c);
    int v = array(C_DBL, 1, vector, 3), w = empty(C_DBL, 1, vector);
    GA_Scale_rows(c, v);
    show_array("scale_rows", c);
    GA_Scale_cols(c, v);
    show_array("scale_cols", c);
    GA_Get_diag(c, w);
    show_array("get_diag", w);
    GA_Add_diagonal(c, v);
    show_array("add_diagonal", c);
    GA_Shift_diagonal(c, &two);
    show_array("shift_diagonal", c);
    GA_Set_diagonal(c, w);
    show_array("set_diagonal", c);
    GA_Zero_diagonal(c);
    show_array("zero_diagonal", c);
    /* Of small integers, so that floats are exact. */
    int fa = array(C_FLOAT, 2, wide, 1), fb = array(C_FLOAT, 2, tall, 1), fc = empty(C_FLOAT, 2, square);
    GA_Sgemm('n', 'n', N, N, M, 1, fa, fb, 0, fc);
    show_array("sgemm", fc);
    int za = array(C_DCPL, 2, wide, 1), zb = array(C_DCPL, 2, tall, 1), zc = array(C_DCPL, 2, square, 1);
    GA_Zgemm('n', 't', N, N, M, (DoubleComplex){1, -2}, za, za, (DoubleComplex){0.5, 0.5}, zc);
    show_array("zgemm", zc);
    int ca = array(C_SCPL, 2, wide, 1), cb = array(C_SCPL, 2, tall, 1), cc = empty(C_SCPL, 2, square);
    GA_Cgemm('n', 'n', N, N, M, (SingleComplex){1, 1}, ca, cb, (SingleComplex){0, 0}, cc);
    show_array("cgemm", cc);
    int all[] = {a, b, c, t, v, w, fa, fb, fc, za, zb, zc, ca, cb, cc};
    for (int k = 0; k < 15; k++) GA_Destroy(all[k]);
}

/* Scans over segments, and what they are for. */
static void scans(void) {
    enum { LONG = 500 };
    int dims[] = {LONG}, count, lo[1], ld[1], one[] = {1};
    char name[] = "s";
    (void)ld;
    int a = array(C_DBL, 1, dims, 1), b = empty(C_DBL, 1, dims), bits = NGA_Create(C_LONG, 1, dims, name, NULL);
    int ints = NGA_Create(C_INT, 1, dims, name, NULL), start = 5, step = 3;
    GA_Zero(bits);
    for (int at = 0; at < LONG; at += 37) {
        long set = 1;
        lo[0] = at;
        if (at / 37 % nproc == me) NGA_Put(bits, lo, lo, &set, one);
    }
    GA_Sync();
    GA_Scan_copy(a, b, bits, 0, LONG - 1);
    show_array("scan_copy", b);
    GA_Scan_add(a, b, bits, 0, LONG - 1, 0);
    show_array("scan_add", b);
    GA_Scan_add(a, b, bits, 0, LONG - 1, 1);
    show_array("scan_add without itself", b);
    GA_Zero(b);
    GA_Pack(a, b, bits, 0, LONG - 1, &count);
    show1("packed", count);
    show_array("pack", b);
    GA_Unpack(b, a, bits, 0, LONG - 1, &count);
    show_array("unpack", a);
    GA_Patch_enum(ints, 10, LONG - 20, &start, &step);
    (void)ints;
    lo[0] = 10;
    int hi[] = {LONG - 20}, numbers[LONG];
    NGA_Get(ints, lo, hi, numbers, one);
    show_buffer("patch_enum", C_INT, numbers, LONG - 29);
    GA_Sync();
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(bits);
    GA_Destroy(ints);
}

/* A symmetric matrix whose eigenvalues lie apart. */
static int symmetric(double diagonal) {
    int g = array(C_DBL, 2, square, 0.01);
    GA_Symmetrize(g);
    double shift[N];
    int v = empty(C_DBL, 1, vector), lo[] = {0}, hi[] = {N - 1}, ld[] = {1};
    for (int i = 0; i < N; i++) shift[i] = diagonal + i;
    if (me == 0) NGA_Put(v, lo, hi, shift, ld);
    GA_Sync();
    GA_Add_diagonal(g, v);
    GA_Destroy(v);
    return g;
}

/* |x a - b|, as the greatest element; printed as whether it is tiny. The solvers are Fortran's: what are columns for
   them are rows here. */
static void residual(const char *what, int a, int x, int b, int rows) {
    int dims[] = {rows, N}, r = empty(C_DBL, 2, dims), index[2];
    double one = 1, minus = -1, extremes[2];
    char max[] = "max", min[] = "min";
    GA_Dgemm('n', 'n', rows, N, N, 1, x, a, 0, r);
    GA_Add(&one, r, &minus, b, r);
    NGA_Select_elem(r, max, &extremes[0], index);
    NGA_Select_elem(r, min, &extremes[1], index);
    show1(what, fabs(extremes[0]) < 1e-9 && fabs(extremes[1]) < 1e-9);
    GA_Destroy(r);
}

static void solvers(void) {
    double values[N];
    int a = symmetric(20), v = empty(C_DBL, 2, square);
    GA_Diag_std_seq(a, v, values);
    show("diag_std_seq", N, values);
    int s = symmetric(40);
    GA_Diag_seq(a, s, v, values);
    show("diag_seq", N, values);
    int dims[] = {3, N}, b = array(C_DBL, 2, dims, 1), x = GA_Duplicate(b, (char[]){"x"});
#ifndef NO_SCALAPACK
    int copy = GA_Duplicate(a, (char[]){"copy"});
    GA_Copy(a, copy);
    GA_Copy(b, x);
    show1("llt_solve", GA_Llt_solve(copy, x));
    show_array("solution by Cholesky", x);
    residual("it solves", a, x, b, 3);
    GA_Copy(a, copy);
    GA_Copy(b, x);
    show1("solve", GA_Solve(copy, x));
    show_array("solution", x);
    GA_Copy(a, copy);
    GA_Copy(b, x);
    GA_Lu_solve('n', copy, x);
    show_array("solution by LU", x);
    residual("it solves", a, x, b, 3);
    GA_Copy(a, copy);
    show1("spd_invert", GA_Spd_invert(copy));
    show_array("inverse", copy);
    GA_Dgemm('n', 'n', N, N, N, 1, a, copy, 0, v);
    show_array("the matrix by its inverse", v);
    GA_Destroy(copy);
#else
    (void)residual;
#endif
    GA_Destroy(a);
    GA_Destroy(v);
    GA_Destroy(s);
    GA_Destroy(b);
    GA_Destroy(x);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    elements();
    reductions();
    products();
    scans();
    solvers();
    end();
    return 0;
}
