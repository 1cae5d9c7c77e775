# SPDX-License-Identifier: GPL-2.0
#
# ATP for Linux: the kernel module, its user space, its tests.
# "make help" lists what can be built.

ifeq ($(V),1)
  Q :=
else
  Q := @
  MAKEFLAGS += --no-print-directory
endif
msg = @printf '  %-7s %s\n' $(1) "$(2)"

SHELL := /bin/bash
top := $(CURDIR)
build := $(top)/build

# Headers of the running kernel, unless told otherwise.
KDIR ?= /lib/modules/$(shell uname -r)/build
# Debian's stock kernels that the tests run on: folders of build/kernels/.
VM_KERNELS ?= 6.1 6.12
# Kernels of our own build that find bugs, there too.
DEBUG_KERNELS ?= kasan kcsan

have_kdir := $(wildcard $(KDIR)/Makefile)
module_src = $(shell find Kbuild kernel uapi -name '*.[chS]' -o -name Kbuild)

all: $(if $(have_kdir),modules) userspace
ifeq ($(have_kdir),)
	$(call msg,SKIP,module: no headers in $(KDIR) (KDIR= names others))
endif

help:
	@echo 'Building:'
	@echo '  all           module for the running kernel, if its headers are here, and user space'
	@echo '  modules       atp.ko for the kernel whose headers KDIR= names'
	@echo '  vm-modules    build/kmod/<kernel>/atp.ko for $(VM_KERNELS)'
	@echo '  userspace     switch, tools, library, bindings'
	@echo '  ip-atp        Debian'\''s ip(8) with the object "atp": build/iproute2/ip'
	@echo '  install       module and user space, for the running kernel or below DESTDIR='
	@echo '  install-ip-atp  that ip as /usr/local/sbin/ip, beside Debian'\''s'
	@echo '  deb           Debian packages in build/deb/'
	@echo '  netlink-gen   C code from Documentation/netlink/specs/atp.yaml'
	@echo '  clean         remove what was built; distclean: what was downloaded, too'
	@echo 'Trying:'
	@echo '  deps          install the Debian packages that are missing'
	@echo '  demo          train a model over a rack in a virtual machine'
	@echo '                (SERVER=1: the PS host takes the steps)'
	@echo '  bench         how fast it is here, beside Gloo, Open MPI and a TCP server:'
	@echo '                tables, build/bench.json, build/bench.png; for less of it'
	@echo '                WORKERS=4 BYTES=4194304 ROUNDS=1 BEDS=rack (MBIT=5)'
	@echo '  profile       where its time goes, by function (SYSTEM="Gloo, ring")'
	@echo 'Testing:'
	@echo '  check         the tests, in 80 minutes; ends with "N passed, N failed"'
	@echo '  check-all     the same with every case on each kernel, which takes longer'
	@echo '  check-static  style and compiler checks alone'
	@echo '  check-host    the tests that run on this machine'
	@echo '  check-debug   builds kernels that find bugs ($(DEBUG_KERNELS)) and'
	@echo '                runs the tests of the virtual machine on them'
	@echo '  check-packages  the Debian packages on a fresh Debian 12'
	@echo '  check-bench   "make bench" and "make profile" in small'
	@echo '  fuzz          the fuzzers for FUZZ_SECONDS= each (600); FUZZ_TARGETS= for some'
	@echo 'V=1 shows the commands. selftests/README says how to run one test.'

# A module's own type information needs the vmlinux of the build, which not
# every headers package has.
kbuild_args := CONFIG_DEBUG_INFO_BTF_MODULES= $(W:%=W=%)

# External modules build where their sources are: give every kernel a copy.
# rsync removes what left the sources and keeps what was built.
#   $(call kmod,where,KDIR[,ARGUMENT...])
define kmod
	$(Q)mkdir -p $(1)
	$(Q)rsync -a --delete --prune-empty-dirs \
		--include='*/' --include='*.[chS]' --include=Kbuild \
		--exclude='*' Kbuild kernel uapi $(1)/
	+$(Q)$(MAKE) -C $(2) M=$(1) KCFLAGS="-Werror $(KCFLAGS)" \
		$(kbuild_args) $(3) modules
endef

modules:
	$(call msg,KMOD,atp.ko for $(KDIR))
	$(call kmod,$(build)/kmod/host,$(KDIR))

vm-modules: $(VM_KERNELS:%=$(build)/kmod/%/atp.ko)

# In a debug kernel that has UBSAN it is for the module alone.
variant = $(if $(filter $*,$(DEBUG_KERNELS)),UBSAN_SANITIZE=y) \
	  $(if $(filter uml,$*),ARCH=um)

$(build)/kmod/%/atp.ko: $(module_src) $(build)/kernels/%/release
	$(call msg,KMOD,atp.ko for Linux $*)
	$(call kmod,$(build)/kmod/$*,$(build)/kernels/$*/kdir,$(variant))
	$(Q)touch $@

.PRECIOUS: $(build)/kernels/%/release
$(build)/kernels/%/release:
	$(Q)selftests/deps.sh build

debug_config := selftests/debug/configs
$(DEBUG_KERNELS:%=$(build)/kernels/%/release): $(build)/kernels/%/release: \
		selftests/debug/build-kernel.sh \
		$(debug_config)/base.config $(debug_config)/%.config
	$(Q)selftests/debug/build-kernel.sh $*
	$(Q)touch $@

# User-mode Linux, for the benchmark
$(build)/kernels/uml/release: selftests/debug/build-kernel.sh \
		userspace/bench/uml/kernel.config \
		userspace/bench/uml/bpf_jit.c
	$(Q)selftests/debug/build-kernel.sh uml
	$(Q)touch $@

userspace:
	+$(Q)$(MAKE) -C userspace all

ip-atp install-ip-atp netlink-gen:
	+$(Q)$(MAKE) -C userspace $@

install: $(if $(have_kdir),modules)
ifneq ($(have_kdir),)
	# nobody but the distribution has the key to sign it with
	+$(Q)$(MAKE) -C $(KDIR) M=$(build)/kmod/host CONFIG_MODULE_SIG_ALL= \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) modules_install
ifeq ($(DESTDIR),)
	# kbuild leaves it where there is no System.map
	$(Q)depmod -a
endif
endif
	+$(Q)$(MAKE) -C userspace install
ifeq ($(have_kdir),)
	$(call msg,SKIP,atp.ko was not installed: no headers in $(KDIR))
endif

deps:
	$(Q)selftests/deps.sh

# From a copy, as Debian's tools leave files beside the sources.
deb:
	$(Q)selftests/deps.sh deb
	$(call msg,DEB,packages in build/deb/)
	$(Q)rm -rf $(build)/deb
	$(Q)mkdir -p $(build)/deb/atp
	$(Q)rsync -a --exclude=/build --exclude=.git ./ $(build)/deb/atp/
	$(Q)cd $(build)/deb/atp && env -u MAKEFLAGS -u MAKELEVEL \
		dpkg-buildpackage -us -uc -b >../build.log 2>&1 || \
		{ tail -n 30 ../build.log; exit 1; }
	$(Q)cd $(build)/deb && ls *.deb | grep -v dbgsym

demo:
	$(Q)selftests/deps.sh build
	+$(Q)$(MAKE) vm-modules VM_KERNELS=6.1
	+$(Q)$(MAKE) userspace ip-atp
	$(Q)userspace/demo/demo.sh

bench: deps
	+$(Q)$(MAKE) vm-modules VM_KERNELS=6.12
	+$(Q)$(MAKE) userspace
	+$(Q)$(MAKE) -C userspace/bench run

profile: deps
	+$(Q)$(MAKE) userspace
	+$(Q)$(MAKE) -C userspace/bench profile

# What does not build fails its own tests below, and those of the others run.
check: deps
	+$(Q)$(MAKE) -k vm-modules userspace ip-atp || true
	$(Q)selftests/run.sh

# Not for continuous integration, which has no time for it
check-all: deps
	+$(Q)$(MAKE) -k vm-modules userspace ip-atp || true
	$(Q)selftests/run.sh --whole

check-host: deps
	+$(Q)$(MAKE) -k vm-modules userspace || true
	$(Q)selftests/run.sh --host

check-static: deps
	$(Q)selftests/run.sh --only static

# Not part of "check": it takes as long again.
check-debug: deps
	$(Q)selftests/debug/check.sh $(DEBUG_KERNELS)

# Nor is this one: most of it is compilers in an emulated machine.
check-packages: deps
	$(Q)selftests/run.sh --only packages/test_install

# Nor this: it builds User-mode Linux.
check-bench: deps
	+$(Q)$(MAKE) userspace
	$(Q)selftests/run.sh --only bench/test_make

# What is found, and what was tried on the way, stays in build/fuzz/.
fuzz: deps
	+$(Q)$(MAKE) -C selftests/fuzz
	$(Q)FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) FUZZ_SEED=0 \
		selftests/fuzz/fuzz.sh $(FUZZ_TARGETS)

clean:
	$(Q)rm -rf $(build)/{fuzz,kmod,selftests,static,tests,vm,vm-logs,vm-out}
	+$(Q)[ ! -e userspace/Makefile ] || $(MAKE) -C userspace clean
	+$(Q)for dir in selftests/*/; do \
		[ ! -e $$dir/Makefile ] || $(MAKE) -C $$dir clean; done

distclean: clean
	$(Q)rm -rf $(build)

.PHONY: all help modules vm-modules userspace ip-atp install-ip-atp \
	netlink-gen install deps demo bench profile check check-all check-host \
	check-static check-debug check-packages check-bench deb fuzz clean distclean
# A failed build must not leave a module that looks new.
.DELETE_ON_ERROR:
