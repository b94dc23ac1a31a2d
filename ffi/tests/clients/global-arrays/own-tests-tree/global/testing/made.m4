define(`GREETING', `$1 from m4')dnl
#if HAVE_CONFIG_H
#   include "config.fh"
#endif
      program main
      implicit none
#include "mafdecls.fh"
#include "global.fh"
      integer ierr, i
      call mpi_init(ierr)
      call ga_initialize()
      i = ga_nodeid()
#ifdef OTHERWISE
      if (i .eq. 0) print *, 'GREETING(`otherwise')'
#else
      if (i .eq. 0) print *, 'GREETING(`as it is')'
#endif
      call F77_FLUSH(6)
      if (bit_size(i) .ne. 64) call ga_error('integers are short', 1)
      call ga_terminate()
      call mpi_finalize(ierr)
      end
