-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark dissector of the gradient aggregation protocol; "atp" is
-- AppleTalk's there.  The layout is that of uapi/linux/atp_packet.h, and a
-- packet that every host refuses whatever the job (kernel/engine/packet.c) is
-- marked with the same reason.
--
--	tshark -X lua_script:atpgrad.lua -r FILE -Y 'atpgrad.jobID == 7'

local PORT = 4797
local VERSION = 1
local HEADER, CONTROL = 36, 32
local MOST_WORKERS, MOST_LANES = 32, 3400 / 4
local DATA, PONG = 1, 8
local INT32, FLOAT32 = 1, 2

local types = {
	[1] = "DATA", [2] = "JOIN", [3] = "WELCOME", [4] = "LEAVE",
	[5] = "ABORT", [6] = "STATUS", [7] = "PING", [8] = "PONG",
}
local data_types = { [0] = "none", [1] = "int32", [2] = "float32" }
local reasons = {
	[0] = "none", [1] = "left", [2] = "silent", [3] = "rejoin",
	[4] = "disagree", [5] = "epoch", [6] = "mismatch", [7] = "removed",
	[8] = "mtu", [9] = "late",
	[10] = "server", [11] = "ps-silent", [12] = "unanswered",
}

local atpgrad = Proto("atpgrad", "Gradient aggregation (ATP)")
local f = atpgrad.fields

f.version = ProtoField.uint8("atpgrad.version", "version")
f.type = ProtoField.uint8("atpgrad.type", "type", base.DEC, types)
f.flags = ProtoField.uint16("atpgrad.flags", "flags", base.HEX)
f.jobID = ProtoField.uint32("atpgrad.jobID", "jobID")
f.epoch = ProtoField.uint32("atpgrad.epoch", "epoch")
f.sequenceNumber = ProtoField.uint32("atpgrad.sequenceNumber",
	"sequenceNumber")
f.bitmap0 = ProtoField.uint32("atpgrad.bitmap0", "bitmap0", base.HEX)
f.bitmap1 = ProtoField.uint32("atpgrad.bitmap1", "bitmap1", base.HEX)
f.fanInDegree0 = ProtoField.uint8("atpgrad.fanInDegree0", "fanInDegree0")
f.fanInDegree1 = ProtoField.uint8("atpgrad.fanInDegree1", "fanInDegree1")
f.dataType = ProtoField.uint8("atpgrad.dataType", "dataType", base.DEC,
	data_types)
f.treeID = ProtoField.uint8("atpgrad.treeID", "treeID")
f.aggregatorIndex = ProtoField.uint32("atpgrad.aggregatorIndex",
	"aggregatorIndex")
f.elements = ProtoField.uint16("atpgrad.elements", "elements")
f.cwndCap = ProtoField.uint16("atpgrad.cwndCap", "cwndCap")

-- The bits of flags, from the lowest
local flag_names = {
	"overflow", "resend", "collision", "ecn", "edgeSwitchIdentifier",
	"isAck", "raw", "last", "switched", "mcast",
}
local F = {}
for i, name in ipairs(flag_names) do
	F[name] = 2 ^ (i - 1)
	f[name] = ProtoField.bool("atpgrad." .. name, name, 16, nil, F[name])
end
local F_ALL = 2 ^ #flag_names - 1
local GRADIENT = { "overflow", "resend", "collision", "ecn", "raw", "last",
	"switched" }
local PARAMETER = { "isAck", "overflow", "collision", "ecn", "raw", "last",
	"switched", "mcast" }

-- struct atp_ctl
local control_names = { "nonce", "workers", "fragment", "window", "scale",
	"reason", "ranks", "server" }
for _, name in ipairs(control_names) do
	f[name] = ProtoField.uint32("atpgrad." .. name, name,
		name == "ranks" and base.HEX or base.DEC,
		name == "reason" and reasons or nil)
end

f.int32 = ProtoField.int32("atpgrad.int32", "lane")
f.float32 = ProtoField.float("atpgrad.float32", "lane")
f.padding = ProtoField.bytes("atpgrad.padding", "padding")
f.nextIndex = ProtoField.uint32("atpgrad.nextIndex",
	"aggregatorIndex one window later")
f.refused = ProtoField.string("atpgrad.refused", "refused")

-- Why a host refuses a packet, as its counters call it
local refusals = {
	short = "less than a header",
	version = "another version",
	type = "undefined type",
	flags = "undefined or contradicting flags",
	length = "not as long as the header says",
	checksum = "no UDP checksum",
	dtype = "undefined data type",
	fanin = "fan-in or tree not the job's",
	bitmap = "no or undefined workers",
	elements = "more or fewer lanes than due",
}
local experts = {}
for name, text in pairs(refusals) do
	experts[name] = ProtoExpert.new("atpgrad.refused." .. name, text,
		expert.group.MALFORMED, expert.severity.ERROR)
end
experts.bad_checksum = ProtoExpert.new("atpgrad.bad_checksum",
	"UDP checksum is wrong, or left to an offload",
	expert.group.CHECKSUM, expert.severity.ERROR)
experts.aborted = ProtoExpert.new("atpgrad.aborted", "the run has ended",
	expert.group.RESPONSE_CODE, expert.severity.WARN)
experts.resent = ProtoExpert.new("atpgrad.resent", "sent again",
	expert.group.SEQUENCE, expert.severity.NOTE)
experts.congestion = ProtoExpert.new("atpgrad.congestion",
	"congestion met on the way here", expert.group.SEQUENCE,
	expert.severity.NOTE)
atpgrad.experts = experts

local udp_checksum = Field.new("udp.checksum")
local udp_length = Field.new("udp.length")
local udp_src, udp_dst = Field.new("udp.srcport"), Field.new("udp.dstport")
local ip_src, ip_dst = Field.new("ip.src"), Field.new("ip.dst")
local ip6_src, ip6_dst = Field.new("ipv6.src"), Field.new("ipv6.dst")

local function has(flags, name)
	return bit32.band(flags, F[name]) ~= 0
end

local function only(flags, names)
	local rest = flags

	for _, name in ipairs(names) do
		if has(rest, name) then
			rest = rest - F[name]
		end
	end
	return rest == 0
end

local function flags_ok(h)
	if h.type ~= DATA then
		return h.flags == 0
	end
	if has(h.flags, "raw") and has(h.flags, "overflow") then
		return false
	end
	return only(h.flags, has(h.flags, "isAck") and PARAMETER or GRADIENT)
end

local function payload_length(elements)
	return math.floor((elements * 4 + 7) / 8) * 8
end

local function refuse_data(h, len)
	local ack, raw = has(h.flags, "isAck"), has(h.flags, "raw")
	local overflow = has(h.flags, "overflow")

	if h.elements > MOST_LANES then
		return "elements"
	end
	-- the PS asks for values as they were pushed
	if h.elements == 0 and not (ack and overflow) then
		return "elements"
	end
	if len ~= HEADER + payload_length(h.elements) then
		return "length"
	end
	if h.dataType ~= INT32 and h.dataType ~= FLOAT32 then
		return "dtype"
	end
	if ack then
		if raw and h.dataType ~= FLOAT32 or overflow and
		   h.elements > 0 and h.dataType ~= INT32 then
			return "flags"
		end
		return nil
	end
	if h.fanInDegree0 == 0 or h.fanInDegree0 > MOST_WORKERS then
		return "fanin"
	end
	if h.bitmap0 == 0 or h.bitmap0 >= 2 ^ h.fanInDegree0 then
		return "bitmap"
	end
	-- values of several workers come from a switch, and never as pushed
	if bit32.band(h.bitmap0, h.bitmap0 - 1) ~= 0 and
	   (raw or not has(h.flags, "switched")) then
		return "bitmap"
	end
	return nil
end

local function refuse_control(h, len)
	if h.elements ~= 0 then
		return "elements"
	elseif len ~= HEADER + CONTROL then
		return "length"
	elseif h.dataType ~= 0 then
		return "dtype"
	end
	return nil
end

-- The reason, or nil
local function refuse(h, len)
	if h.version ~= VERSION then
		return "version"
	elseif h.type < DATA or h.type > PONG then
		return "type"
	elseif not flags_ok(h) then
		return "flags"
	elseif h.fanInDegree1 ~= 0 or h.treeID ~= 0 then
		return "fanin"
	elseif h.bitmap1 ~= 0 then
		return "bitmap"
	elseif h.type == DATA then
		return refuse_data(h, len)
	end
	return refuse_control(h, len)
end

-- The innermost, where there are tunnels
local function last(field)
	local all = { field() }

	return all[#all]
end

local function add_words(sum, bytes)
	local i

	for i = 0, bytes:len() - 2, 2 do
		sum = sum + bytes:get_index(i) * 256 + bytes:get_index(i + 1)
	end
	if bytes:len() % 2 == 1 then
		sum = sum + bytes:get_index(bytes:len() - 1) * 256
	end
	return sum
end

-- "absent", "bad", "good", or nil if it cannot be told
local function checksum(tvb)
	local src, dst = last(ip6_src) or last(ip_src),
		last(ip6_dst) or last(ip_dst)
	local check, length = last(udp_checksum), last(udp_length)
	local sum

	if not check or not length or not src or not dst then
		return nil
	end
	if check.value == 0 then
		return "absent"
	end
	if length.value ~= tvb:reported_len() + 8 or
	   tvb:len() ~= tvb:reported_len() then
		return nil
	end
	sum = add_words(0, src.range:bytes())
	sum = add_words(sum, dst.range:bytes())
	sum = sum + 17 + length.value
	sum = sum + last(udp_src).value + last(udp_dst).value + length.value +
		check.value
	if tvb:len() > 0 then
		sum = add_words(sum, tvb:bytes())
	end
	while sum > 0xffff do
		sum = sum % 0x10000 + math.floor(sum / 0x10000)
	end
	return sum == 0xffff and "good" or "bad"
end

local function mark(tree, reason)
	tree:add(f.refused, reason):set_generated()
	tree:add_proto_expert_info(experts[reason])
end

-- "0-2,5"
local function ranks_text(bitmap)
	local words, first = {}, nil

	for rank = 0, MOST_WORKERS do
		local there = rank < MOST_WORKERS and
			bit32.band(bitmap, 2 ^ rank) ~= 0

		if there and not first then
			first = rank
		elseif not there and first then
			words[#words + 1] = first == rank - 1 and first or
				first .. "-" .. rank - 1
			first = nil
		end
	end
	return #words > 0 and table.concat(words, ",") or "none"
end

local function add_flags(tree, range, flags)
	local item, words = tree:add(f.flags, range), {}

	for _, name in ipairs(flag_names) do
		item:add(f[name], range)
		if has(flags, name) then
			words[#words + 1] = name
		end
	end
	if flags > F_ALL then
		words[#words + 1] = "undefined"
	end
	item:append_text(" (" .. table.concat(words, " ") .. ")")
end

-- Return: the header's numbers by their names
local function add_header(tree, tvb)
	local h, at = {}, 0
	local layout = {
		{ "version", 1 }, { "type", 1 }, { "flags", 2 },
		{ "jobID", 4 }, { "epoch", 4 }, { "sequenceNumber", 4 },
		{ "bitmap0", 4 }, { "bitmap1", 4 }, { "fanInDegree0", 1 },
		{ "fanInDegree1", 1 }, { "dataType", 1 }, { "treeID", 1 },
		{ "aggregatorIndex", 4 }, { "elements", 2 }, { "cwndCap", 2 },
	}

	for _, field in ipairs(layout) do
		local name, range = field[1], tvb(at, field[2])

		h[name] = range:uint()
		if name == "flags" then
			add_flags(tree, range, h.flags)
		elseif name == "bitmap0" then
			h.bitmap0_item = tree:add(f.bitmap0, range)
		else
			tree:add(f[name], range)
		end
		at = at + field[2]
	end
	return h
end

local function add_lanes(tree, tvb, h)
	local lane = h.dataType == FLOAT32 and has(h.flags, "raw") and
		f.float32 or f.int32
	local rest = tvb:len() - HEADER
	local lanes = math.min(h.elements, math.floor(rest / 4))
	local item

	if rest == 0 then
		return
	end
	item = tree:add(tvb(HEADER), lanes .. " lanes")
	for i = 0, lanes - 1 do
		item:add_le(lane, tvb(HEADER + 4 * i, 4))
			:append_text(" [" .. i .. "]")
	end
	if rest > 4 * lanes then
		item:add(f.padding, tvb(HEADER + 4 * lanes))
	end
end

local function add_control(tree, tvb, h)
	local item = tree:add(tvb(HEADER, CONTROL), "control")

	for i, name in ipairs(control_names) do
		local range = tvb(HEADER + 4 * (i - 1), 4)
		local child = item:add(f[name], range)

		if name == "ranks" then
			child:append_text(" (" .. ranks_text(range:uint()) ..
				")")
		elseif name == "reason" and types[h.type] == "ABORT" then
			child:add_proto_expert_info(experts.aborted)
		end
	end
end

-- What the numbers of a good packet say
local function explain(tree, pinfo, h)
	local word = types[h.type]

	if h.type == DATA and has(h.flags, "isAck") then
		word = h.elements == 0 and "RAW REQUEST" or "PARAMETER"
	end
	if word == "PARAMETER" and has(h.flags, "collision") then
		tree:add(f.nextIndex, h.bitmap0):set_generated()
	else
		h.bitmap0_item:append_text(" (ranks " ..
			ranks_text(h.bitmap0) .. ")")
		word = word .. " ranks " .. ranks_text(h.bitmap0)
	end
	if has(h.flags, "resend") then
		tree:add_proto_expert_info(experts.resent)
	end
	if has(h.flags, "ecn") then
		tree:add_proto_expert_info(experts.congestion)
	end
	pinfo.cols.info = word .. " job " .. h.jobID .. " epoch " .. h.epoch ..
		" seq " .. h.sequenceNumber
end

-- Of the first packet: there are several where the kernel had a burst in one
-- piece, on its way to a device or merged by GRO.
local function first_length(tvb)
	local len, whole = HEADER, tvb:reported_len()

	if tvb:len() < HEADER or tvb(1, 1):uint() ~= DATA then
		return whole
	end
	len = len + payload_length(tvb(32, 2):uint())
	if whole - len < HEADER or tvb:len() <= len or
	   tvb(len, 1):uint() ~= VERSION then
		return whole
	end
	return len
end

local function add_packet(tvb, pinfo, parent, check)
	local tree = parent:add(atpgrad, tvb())
	local reason, h

	if check == "absent" then
		mark(tree, "checksum")
	elseif check == "bad" then
		tree:add_proto_expert_info(experts.bad_checksum)
	end
	if tvb:len() < HEADER then
		mark(tree, "short")
		return
	end
	h = add_header(tree, tvb)
	reason = refuse(h, tvb:reported_len())
	if reason then
		mark(tree, reason)
		pinfo.cols.info = "refused: " .. refusals[reason]
	else
		explain(tree, pinfo, h)
	end
	if h.type == DATA then
		add_lanes(tree, tvb, h)
	elseif tvb:len() >= HEADER + CONTROL then
		add_control(tree, tvb, h)
	end
end

function atpgrad.dissector(tvb, pinfo, parent)
	local len, number, rest = first_length(tvb), 1, tvb
	local check

	pinfo.cols.protocol = "ATPGRAD"
	-- that of a burst is not there yet, or no more
	if len == tvb:reported_len() then
		check = checksum(tvb)
	end
	while len < rest:reported_len() do
		add_packet(rest(0, len):tvb(), pinfo, parent, check)
		rest = rest(len):tvb()
		len = first_length(rest)
		number = number + 1
	end
	add_packet(rest, pinfo, parent, check)
	if number > 1 then
		pinfo.cols.info:prepend(number .. " packets, the last: ")
	end
	return tvb:len()
end

DissectorTable.get("udp.port"):add(PORT, atpgrad)
