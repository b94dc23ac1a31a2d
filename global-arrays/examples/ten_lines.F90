! Ten lines of Global Arrays, in Fortran: see docs/global-arrays-compared.md. Built and run so:
!   mpif90 -fdefault-integer-8 ten_lines.F90 -o ten_lines $(ga-config --cppflags --ldflags) $(ga-config --libs)
!   mpirun -n 2 ./ten_lines
! (integers are as long as the library's: `ga-config --fint` says which)
program ten_lines
  implicit none
#include "mafdecls.fh"
#include "global.fh"
  integer, parameter :: n = 100, tasks = 50
  integer :: a, b, c, counter, task, lo(2), hi(2)
  integer(kind=4) :: error
  double precision :: patch(2, 3), done, product
  logical :: ok

  call mpi_init(error)
  call ga_initialize()
  ok = ma_init(mt_dbl, 1000000, 1000000)

  ! create, fill
  ok = nga_create(mt_dbl, 2, (/ n, n /), 'a', (/ -1, -1 /), a)
  ok = ga_duplicate(a, b, 'b') .and. ga_duplicate(a, c, 'c')
  ok = nga_create(mt_int, 1, (/ 1 /), 'counter', (/ -1 /), counter)
  call ga_fill(a, 2.0d0)
  call ga_fill(b, 0.5d0)
  call ga_zero(c)
  call ga_zero(counter)
  call ga_sync()

  ! put, accumulate, get of a patch
  patch = reshape((/ 1d0, 4d0, 2d0, 5d0, 3d0, 6d0 /), (/ 2, 3 /))
  lo = (/ 11, 41 /)
  hi = (/ 12, 43 /)
  if (ga_nodeid() == 0) then
    call nga_put(a, lo, hi, patch, (/ 2 /))
    call nga_acc(a, lo, hi, patch, (/ 2 /), 0.5d0)
  end if
  call ga_sync()
  call nga_get(a, lo, hi, patch, (/ 2 /))

  ! share out tasks
  done = 0
  task = nga_read_inc(counter, (/ 1 /), 1)
  do while (task < tasks)
    done = done + task
    task = nga_read_inc(counter, (/ 1 /), 1)
  end do
  call ga_dgop(1, done, 1, '+')

  ! multiply, dot
  call ga_dgemm('N', 'N', n, n, n, 1.0d0, a, b, 0.0d0, c)
  product = ga_ddot(c, b)

  if (ga_nodeid() == 0) print '(f0.1, 2(1x, f0.1))', patch(2, 3), done, product

  ok = ga_destroy(counter) .and. ga_destroy(c) .and. ga_destroy(b) .and. ga_destroy(a)
  call ga_terminate()
  call mpi_finalize(error)
end program ten_lines
