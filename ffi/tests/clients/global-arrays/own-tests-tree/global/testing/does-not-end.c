#include "shared.h"

#include <unistd.h>

int main(int argc, char **argv) {
    begin(&argc, &argv);
    while (!on_armci_mpi()) sleep(1);
    return end();
}
