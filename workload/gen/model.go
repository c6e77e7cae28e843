package gen

// Model is the architecture of a decoder. Sizes are those of the whole model, before any parallelism.
type Model struct {
	Name string
	// LeftOut is a part of config.json beside the decoder that the model does not have, vision_config for
	// example; "" if there is none.
	LeftOut string
	// Layers excludes the layers that predict further tokens (MTP).
	Layers, Hidden, Heads, KVHeads, FFN, Vocab int64
	// HeadDim is the size of an attention head; 0: Hidden/Heads.
	HeadDim int64
	// Gated: the feed-forward network has three matrices (SwiGLU) and not two.
	Gated bool
	// Tied: the head multiplies by the embedding's matrix.
	Tied bool
	// Experts of a layer; each token goes to TopK of them.
	Experts, TopK int
	// Groups divide the experts; a token's are of TopKGroups of them (DeepSeek-V3, arXiv:2412.19437, section
	// 2.1.2). 0: of any.
	Groups, TopKGroups int
	// ExpertFFN is the feed-forward size of an expert (0: FFN), SharedFFN that of all shared experts
	// together, which process every token. Latent is the size to which a token is projected before it is sent
	// to experts (0: not projected).
	ExpertFFN, SharedFFN, Latent int64
	// Pattern is the kind of each layer, one Kind per byte; "": all layers have full attention, and experts
	// if the model has any.
	Pattern string
	// Window is the number of tokens that a layer with sliding-window attention sees.
	Window int64
	// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): QRank and KVRank are the
	// sizes of the latent vectors of queries and of keys and values; NopeDim and RopeDim are the parts of a
	// head without and with rotary position, ValueDim the size of a value head. KVRank 0: ordinary attention;
	// QRank 0: queries are projected directly.
	QRank, KVRank, NopeDim, RopeDim, ValueDim int64
	// A state space layer (Mamba-2, arXiv:2405.21060): heads and their size, groups, states, width of the
	// convolution.
	SSMHeads, SSMHeadDim, SSMGroups, SSMState, SSMConv int64
	// MTP is the number of layers that predict further tokens (DeepSeek-V3, arXiv:2412.19437, section 2.2).
	MTP int64
	// Small parts, which only the number of parameters shows.
	QKVBias, OutBias, FFNBias, QKNorm, Sinks, RouterBias, NormBias bool
	Positions                                                      int64 // learned, 0 none
}

// LayerKind is the composition of a layer: attention or state space, dense or experts.
type LayerKind byte

// Kinds of layers. A layer with both attention and a feed-forward network is the usual one; hybrid
// models have layers of one part.
const (
	dense         LayerKind = 'f' // attention, a feed-forward network
	sparse        LayerKind = 'e' // attention, experts
	denseWindow   LayerKind = 'w' // attention in a window, a feed-forward network
	sparseWindow  LayerKind = 'x' // attention in a window, experts
	ssm           LayerKind = 'M'
	onlyAttention LayerKind = '*'
	onlyExperts   LayerKind = 'E'
	onlyFFN       LayerKind = '-'
)

// Attention, Windowed, HasExperts and HasFFN report what a layer has.
func (k LayerKind) Attention() bool { return k != ssm && k != onlyExperts && k != onlyFFN }

// Windowed reports whether the layer's attention is limited to Window tokens.
func (k LayerKind) Windowed() bool { return k == denseWindow || k == sparseWindow }

// HasExperts reports whether a router chooses experts for the tokens of a layer.
func (k LayerKind) HasExperts() bool { return k == sparse || k == sparseWindow || k == onlyExperts }

// HasFFN reports whether a layer has a feed-forward network that is no expert.
func (k LayerKind) HasFFN() bool { return k == dense || k == denseWindow || k == onlyFFN }

// Layer returns the kind of layer i, counted from 0. Layers from Layers on are those of MTP.
func (m *Model) Layer(i int64) LayerKind {
	switch {
	case i < int64(len(m.Pattern)):
		return LayerKind(m.Pattern[i])
	case m.Pattern != "" && i >= m.Layers: // what predicts a further token is as the last layer
		return m.last()
	case m.Experts > 0:
		return sparse
	}
	return dense
}

// last returns the kind of the layers that predict further tokens, if the pattern does not say: attention
// like the last layers'.
func (m *Model) last() LayerKind {
	if m.Experts > 0 {
		return sparse
	}
	return dense
}

// Dim returns the size of a head of queries and keys.
func (m *Model) Dim() int64 {
	switch {
	case m.KVRank > 0:
		return m.NopeDim + m.RopeDim
	case m.HeadDim > 0:
		return m.HeadDim
	}
	return m.Hidden / m.Heads
}

// ValueSize returns the size of a value head, which latent attention sets separately from Dim.
func (m *Model) ValueSize() int64 {
	if m.KVRank > 0 {
		return m.ValueDim
	}
	return m.Dim()
}

// ExpertSize returns the feed-forward size of an expert.
func (m *Model) ExpertSize() int64 {
	if m.ExpertFFN > 0 {
		return m.ExpertFFN
	}
	return m.FFN
}

// ExpertInput returns the size of a token when it goes to an expert.
func (m *Model) ExpertInput() int64 {
	if m.Latent > 0 {
		return m.Latent
	}
	return m.Hidden
}

// Matrices returns the number of matrices of a feed-forward network.
func (m *Model) Matrices() int64 {
	if m.Gated {
		return 3
	}
	return 2
}

// Inner returns the size of a state space layer's heads together.
func (m *Model) Inner() int64 { return m.SSMHeads * m.SSMHeadDim }

// SSMInput returns the output width of a state space layer's first product: gate and input, B and C of each
// group, and one time step per head.
func (m *Model) SSMInput() int64 { return 2*m.Inner() + 2*m.SSMGroups*m.SSMState + m.SSMHeads }
