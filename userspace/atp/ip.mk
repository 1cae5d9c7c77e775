# SPDX-License-Identifier: GPL-2.0
#
# Included by iproute2's ip/Makefile: atp(8)'s sources as objects of ip(8).
# ATP_DIR is this folder, ATP_TOP the top of the tree.

include $(ATP_DIR)/sources.mk

ATP_OBJS := $(addprefix atp-,$(ATP_SRCS:.c=.o) ipatp.o)
IPOBJ	 += $(ATP_OBJS) $(ATP_TOP)/build/switch/libatpswitch.a \
	    $(ATP_TOP)/build/lib/libatp.a
LDLIBS	 += $(ATP_LIBS)

atp-%.o: $(ATP_DIR)/%.c
	$(QUIET_CC)$(CC) $(CFLAGS) $(CPPFLAGS) -I$(ATP_TOP)/uapi -I. \
		-MMD -MP -c $< -o $@

# what these make is not what make is for
.DEFAULT_GOAL := all
-include $(wildcard atp-*.d)
