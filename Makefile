# SPDX-License-Identifier: GPL-2.0-only
#
# The way in. `make help` lists what there is. The work is done by scripts/ and, for the modules, by Kbuild.

# The kernel's build looks for Kbuild first, so this file is never read by it.
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := modules

# Variables given to make reach the scripts by the environment.

SPHINXBUILD ?= sphinx-build

.PHONY: modules modules-all install uninstall clean help
modules:
	@scripts/build modules

modules-all:
	@scripts/check kernels modules

install:
	@scripts/build install

uninstall:
	@scripts/build uninstall

clean:
	@rm -rf build

.PHONY: tools install-tools
tools:
	@scripts/tools build

install-tools:
	@scripts/tools install

.PHONY: deb check-deb
deb:
	@scripts/deb

check-deb:
	@scripts/test-deb

.PHONY: demo bench
demo:
	@scripts/demo

bench:
	@tests/bench/bench.py $(BENCH)

.PHONY: check soak check-unit check-kunit check-vm lint docs
check:
	@scripts/check

soak:
	@SOAK=1 scripts/check

check-unit:
	@scripts/check unit

check-kunit:
	@scripts/check kunit

check-vm:
	@scripts/check vm

lint:
	@scripts/lint

docs:
	@command -v $(SPHINXBUILD) >/dev/null || { echo "docs: $(SPHINXBUILD) is not installed; run: scripts/setup" >&2; exit 1; }
	@$(SPHINXBUILD) -q -W --keep-going -b html -d build/docs/.doctrees Documentation build/docs
	@echo "docs: the manual is build/docs/index.html"

help:
	@echo 'Modules'
	@echo '  make              build the modules for the running kernel'
	@echo '  make install      install them under /lib/modules/RELEASE/updates (as root; DESTDIR= for packages)'
	@echo '  make uninstall    remove them again'
	@echo '  make modules-all  build for every kernel of scripts/kernel list, with and without tests; warnings fail'
	@echo '  make clean        remove build/'
	@echo
	@echo 'Tools'
	@echo '  make tools          build railctl and its man page in build/tools'
	@echo '  make install-tools  install them under PREFIX (/usr/local; as root; DESTDIR= for packages)'
	@echo
	@echo 'Packages'
	@echo '  make deb          build rail-dkms and rail-tools for Debian in build/deb'
	@echo
	@echo 'Tests'
	@echo '  make check        everything that CI runs; installs and fetches what it needs by itself'
	@echo '  make soak         the same with big counts and long times'
	@echo '  make check-unit   unit tests and short fuzzer runs, in user space'
	@echo '  make check-kunit  KUnit suites in a virtual host'
	@echo '  make check-vm     tests on virtual hosts; T=name runs only those with that in their name'
	@echo '  make check-deb    build the packages and try them in a clean Debian; needs root'
	@echo '  make lint         static checks of the whole tree'
	@echo
	@echo 'To see it'
	@echo '  make demo         boots two virtual hosts and writes through an NFS mount over RDMA'
	@echo '  make bench        measures ours and its peers in virtual time; BENCH="block --only 4k" for a part of it'
	@echo
	@echo 'Manual'
	@echo '  make docs         build Documentation/ into build/docs'
	@echo
	@echo 'Variables'
	@echo '  KDIR=dir          kernel headers or build tree to build for'
	@echo '  KERNEL=name       one of the cached kernels, to build for or to boot: stock-6.1, stock-6.12, test-7'
	@echo '  ACCEL=kvm|tcg     how virtual hosts run (found out by itself)'
	@echo '  KSRC=dir          kernel source tree to make test-7 from'
	@echo '  RAIL_CACHE=dir    where kernels are kept (~/.cache/rail)'
	@echo
	@echo 'Scripts: scripts/setup, scripts/kernel, scripts/vm; each has --help.'
