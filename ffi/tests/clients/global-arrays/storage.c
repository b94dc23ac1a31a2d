/* What Global Arrays keeps in files: sections of arrays (DRA), files that all ranks share (SF), files of one rank's own (EAF).
   Each file is named after the job and is gone in the end. */
#include "show.h"
#include <dra.h>
#include <eaf.h>
#include <sf.h>
#include <unistd.h>

enum { ROWS = 40, COLUMNS = 30, WORDS = 500 };
static int shape[] = {ROWS, COLUMNS};
static char name[] = "stored";
static int job;

/* Sections go out and come back elsewhere; the array is closed, opened anew and asked for. */
static void sections(void) {
    dra_size_t dims[] = {ROWS, COLUMNS}, request_dims[] = {10, 10}, found[2];
    dra_size_t dlo[] = {4, 6}, dhi[] = {23, 20};
    int glo[] = {11, 9}, ghi[] = {30, 23}, lo[] = {0, 15}, hi[] = {19, 29}, d, request, type, ndim;
    char file[64], found_name[64] = "", found_file[64] = "";
    snprintf(file, sizeof file, "armci-storage-%d.dra", job);
    show1("dra_init", DRA_Init(4, 1e6, 1e7, 1e6));
    DRA_Set_default_config(1, 1);
    int a = NGA_Create(C_DBL, 2, shape, name, NULL), b = GA_Duplicate(a, name);
    fill_array(a, 1);
    GA_Zero(b);
    CHECK(NDRA_Create(C_DBL, 2, dims, name, file, DRA_RW, request_dims, &d) == 0);
    CHECK(NDRA_Write(b, d, &request) == 0 && DRA_Wait(request) == 0); /* all of it is there */
    CHECK(NDRA_Write_section(0, a, glo, ghi, d, dlo, dhi, &request) == 0);
    CHECK(DRA_Wait(request) == 0);
    CHECK(NDRA_Read(b, d, &request) == 0 && DRA_Wait(request) == 0);
    show_array("with a section", b);
    show1("dra_close", DRA_Close(d));
    CHECK(DRA_Open(file, DRA_R, &d) == 0);
    CHECK(NDRA_Inquire(d, &type, &ndim, found, found_name, found_file) == 0);
    show("found", 4, (double[]){type == C_DBL, ndim, (double)found[0], (double)found[1]});
    GA_Zero(b);
    CHECK(NDRA_Read_section(0, b, lo, hi, d, dlo, dhi, &request) == 0 && DRA_Wait(request) == 0);
    show_array("a section elsewhere", b);
    show1("dra_delete", DRA_Delete(d));
    show1("dra_terminate", DRA_Terminate());
    GA_Destroy(a);
    GA_Destroy(b);
}

/* Every rank writes its part of one file, and reads that of the next rank. */
static void shared(void) {
    char file[64];
    double part[WORDS], other[WORDS], bytes = sizeof part;
    int handle, requests[2], next = (me + 1) % nproc;
    snprintf(file, sizeof file, "armci-storage-%d.sf", job);
    show1("sf_create", SF_Create(file, 1e7, 1e6, bytes, &handle));
    for (int k = 0; k < WORDS; k++) part[k] = 1000 * me + k;
    CHECK(SF_Write(handle, bytes * me, bytes / 2, (char *)part, &requests[0]) == 0);
    CHECK(SF_Write(handle, bytes * me + bytes / 2, bytes / 2, (char *)(part + WORDS / 2), &requests[1]) == 0);
    CHECK(SF_Waitall(requests, 2) == 0);
    GA_Sync();
    CHECK(SF_Read(handle, bytes * next, bytes, (char *)other, &requests[0]) == 0 && SF_Wait(&requests[0]) == 0);
    for (int k = 0; k < WORDS; k++) CHECK(other[k] == 1000 * next + k);
    show_buffer("the next rank's part", C_DBL, other, WORDS);
    GA_Sync();
    show1("sf_destroy", SF_Destroy(handle));
}

/* A file of each rank's own: written at once and in the background, measured, cut, read beyond its end. */
static void own(void) {
    char file[64], kind[32] = "";
    int d, request;
    long room = 0;
    double words[WORDS], back[WORDS] = {0}, length = 0;
    snprintf(file, sizeof file, "armci-storage-%d-%d.eaf", job, me);
    for (int k = 0; k < WORDS; k++) words[k] = k + me / 4.;
    CHECK(EAF_Open(file, EAF_RW, &d) == 0);
    CHECK(EAF_Write(d, 0, words, sizeof words) == 0);
    CHECK(EAF_Awrite(d, sizeof words, words, sizeof words, &request) == 0 && EAF_Wait(d, request) == 0);
    CHECK(EAF_Length(d, &length) == 0);
    show1("length", length);
    CHECK(EAF_Aread(d, sizeof words / 2, back, sizeof back, &request) == 0);
    CHECK(EAF_Wait(d, request) == 0); /* to probe for it never finds it done */
    for (int k = 0; k < WORDS; k++) CHECK(back[k] == words[(k + WORDS / 2) % WORDS]);
    show_buffer("read back", C_DBL, back, WORDS);
    CHECK(EAF_Truncate(d, sizeof words) == 0 && EAF_Length(d, &length) == 0);
    show1("cut", length);
    show1("beyond the end", EAF_Eof(EAF_Read(d, 10 * sizeof words, back, sizeof back)));
    CHECK(EAF_Stat(".", &room, kind, sizeof kind - 1) == 0 && room > 0);
    show1("eaf_close", EAF_Close(d));
    show1("eaf_delete", EAF_Delete(file));
    GA_Sync();
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    job = me == 0 ? (int)getpid() : 0;
    GA_Brdcst(&job, sizeof job, 0);
    sections();
    shared();
    own();
    end();
    return 0;
}
