/* What Global Arrays refers to in ScaLAPACK, for a program that calls none of it: so no ScaLAPACK is needed to link. */
#include <stdlib.h>

#define ABSENT(name) \
    void name(void); \
    void name(void) { abort(); }

ABSENT(blacs_gridexit_) ABSENT(blacs_gridinfo_) ABSENT(blacs_gridinit_)
ABSENT(descinit_) ABSENT(iceil_) ABSENT(indxg2p_) ABSENT(numroc_)
ABSENT(pdgetrf_) ABSENT(pdgetrs_) ABSENT(pdlamch_) ABSENT(pdpotrf_) ABSENT(pdpotri_) ABSENT(pdpotrs_)
ABSENT(pdsyev_) ABSENT(pdsyevd_) ABSENT(pdsyevr_) ABSENT(pdsyevx_) ABSENT(pdsygvx_)
ABSENT(pzheevd_) ABSENT(pzheevr_)
