# What people of this field try first. Each target installs the system packages it needs.
PREFIX ?= /usr/local
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help packages build demo test test-nodes ga-tests nwchem-test models lint bench report doc install

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages:
	@scripts/install-packages build

build: packages ## everything, optimised
	$(CARGO) build --release --workspace

demo: packages ## a Hartree-Fock calculation of (H2O)3 on all cores: energy, and where the time went
	@$(CARGO) build --release -p scf -p armci-run
	@$(TARGET)/release/scf benches/scf/molecules/h2o-3.xyz
	@printf '\nNext: make test; $(TARGET)/release/scf --help; your own molecule in place of benches/scf/molecules/h2o-3.xyz\n'

test: packages ## all tests, and the models of every lock-free structure
	@scripts/install-packages fabric || echo "going on without: what goes between nodes is not tested"
	@scripts/install-packages launchers || echo "going on without: what is started by Open MPI or MPICH is skipped"
	$(CARGO) test --workspace
	TEST_NODES=2 $(CARGO) test -p tests $(addprefix --test ,$(ON_NODES))
	@$(MAKE) --no-print-directory models

# Those of the multi-rank tests that `make test` runs between virtual nodes as well, which takes about two minutes.
ON_NODES := contiguous strided notify teams

# Nodes, path, progress. Tests that go through paths or progress by themselves take part in each mode with what belongs to it.
NODE_MODES := 2-rma-thread 2-rma-none 2-am-thread 2-am-none 4-rma-thread 4-am-none

test-nodes: packages ## all multi-rank tests with ranks split over virtual nodes, two of them and four, in six modes (hours; NODE_MODES=4-am-none: one of them)
	@failed=; for mode in $(NODE_MODES); do \
		set -- $$(echo $$mode | tr - ' '); echo "$$1 nodes, ARMCI_PROTOCOL=$$2, ARMCI_PROGRESS=$$3"; \
		TEST_NODES=$$1 TEST_PROTOCOL=$$2 TEST_PROGRESS=$$3 $(CARGO) test -p tests --tests --no-fail-fast || failed="$$failed $$mode"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }
	$(CARGO) test -p tests --test large_between_nodes -- --ignored

ga-tests: packages ## Global Arrays' own test programs, beside ARMCI-MPI (fetches their source, or GA_SOURCE=DIR)
	@scripts/install-packages peers
	@command -v m4 >/dev/null || { echo "ga-tests: needs m4"; exit 1; }
	$(CARGO) build --release -p armci-ffi
	ffi/tests/clients/global-arrays/own-tests --armci $(TARGET)/release --work $(TARGET)/ga-tests $(GA_TESTS)

nwchem-test: packages ## Debian's NWChem, built on libarmci and run beside ARMCI-MPI (10 to 20 minutes, 1.5 GB in target/nwchem)
	@$(MAKE) --no-print-directory install DESTDIR= PREFIX=$(abspath $(TARGET))/nwchem/prefix
	@ffi/tests/clients/nwchem/build $(TARGET)/nwchem/build $(TARGET)/nwchem/prefix >$(TARGET)/nwchem/build.log 2>&1 || \
		{ tail -n 20 $(TARGET)/nwchem/build.log; exit 1; }
	@ffi/tests/clients/nwchem/run $(TARGET)/nwchem/build

models: packages ## the loom models alone
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom $(CARGO) test -p armci-core --lib loom_models

lint: packages ## formatting and clippy, as CI wants them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench: packages ## each figure beside this machine's limit, ARMCI-MPI and Global Arrays; the C library likewise
	@scripts/install-packages peers && scripts/install-packages fabric && scripts/install-packages launchers || echo "going on without the peers"
	@$(CARGO) build --release -p benches -p armci-ffi -p scf
	@$(TARGET)/release/armci-bench

report: packages ## everything as a page with pictures, and the README's figures (QUICK=--quick; REPORT=FILE.json: elsewhere)
	@scripts/install-packages peers && scripts/install-packages fabric && scripts/install-packages launchers || echo "going on without the peers"
	@$(CARGO) build --release -p benches -p armci-ffi -p scf
	@PATH="$(abspath $(TARGET))/release:$$PATH" armci-bench report $(QUICK) \
		$(if $(REPORT),--json $(REPORT),--json docs/report/report.json --plots docs/report --readme README.md)

doc: packages ## the documentation of all crates
	$(CARGO) doc --workspace --no-deps

# Profilers define ARMCI_ names themselves, so those of the static library give way.
install: packages ## programs, C library and headers into PREFIX (/usr/local); compiles as whoever runs it
	$(CARGO) build --release -p armci-run -p scf -p armci-ffi
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 $(TARGET)/release/armci-run $(TARGET)/release/scf $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(TARGET)/release/libarmci.so $(DESTDIR)$(PREFIX)/lib/libarmci.so.1
	ln -sf libarmci.so.1 $(DESTDIR)$(PREFIX)/lib/libarmci.so
	@scripts/static-library $(TARGET)/release/libarmci.a $(DESTDIR)$(PREFIX)/lib/libarmci.a
	install -m 644 ffi/include/armci.h ffi/include/message.h $(DESTDIR)$(PREFIX)/include
	sed 's|@PREFIX@|$(PREFIX)|' ffi/armci.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/armci.pc
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi
