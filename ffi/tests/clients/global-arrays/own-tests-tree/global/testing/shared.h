/* What the programs share: that they are built in several files. */
#if HAVE_CONFIG_H
#include "config.h"
#endif
#if !HAVE_STDIO_H || !HAVE_SYS_TYPES_H || HAVE_NO_SUCH_HEADER_H
#error "the configuration is not that of this system"
#endif
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>

int begin(int *argc, char ***argv);
int end(void);
int on_armci_mpi(void);
